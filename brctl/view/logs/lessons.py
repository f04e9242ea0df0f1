"""What was learned from a log, and what an unknown log is like."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from brctl.view.logs.classification import headline, verdict_document
from brctl.view.notices.page import Json, Page
from brctl.view.text import printable


class ShownLearnedRule(Protocol):
    """What is shown of a learned rule."""

    @property
    def name(self) -> str: ...
    @property
    def anchors(self) -> tuple[str, ...]: ...
    @property
    def fault(self) -> FaultClass | None: ...


class ShownLesson(Protocol):
    """What is shown of a lesson."""

    @property
    def rule(self) -> ShownLearnedRule: ...
    @property
    def line(self) -> str: ...
    @property
    def number(self) -> int: ...
    @property
    def before(self) -> LogVerdict: ...
    @property
    def after(self) -> LogVerdict: ...
    @property
    def path(self) -> Path: ...


class ShownNearRule(Protocol):
    """What is shown of a rule that a line is like."""

    @property
    def name(self) -> str: ...
    @property
    def fault(self) -> FaultClass | None: ...
    @property
    def alike(self) -> float: ...
    @property
    def shared(self) -> tuple[str, ...]: ...


class ShownUnusualLine(Protocol):
    """What is shown of a line that stands out."""

    @property
    def number(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def alike(self) -> int: ...
    @property
    def score(self) -> float: ...


class ShownExplainedLine(Protocol):
    """A line and the rules it is like."""

    @property
    def line(self) -> ShownUnusualLine: ...
    @property
    def near(self) -> Sequence[ShownNearRule]: ...


class ShownExplanation(Protocol):
    """What is shown of an explanation."""

    @property
    def verdict(self) -> LogVerdict: ...
    @property
    def lines(self) -> Sequence[ShownExplainedLine]: ...


def lesson_page(lesson: ShownLesson) -> Page:
    """The answer of `brctl logs teach`."""
    rule = lesson.rule
    body: Mapping[str, Json] = {
        "lesson": {
            "rule": rule.name,
            "class": str(rule.fault),
            "contains": list(rule.anchors),
            "line": lesson.number,
            "text": lesson.line,
        },
        "path": str(lesson.path),
        "before": lesson.before.fault.value,
        "after": lesson.after.fault.value,
        "probability": lesson.after.probability,
    }
    text = "\n".join(
        [
            f"learned {rule.name} from line {lesson.number}: {printable(lesson.line, 160)}",
            f"lines with {printable(rule.anchors[0])!r} now speak for {rule.fault}",
            f"this log: was {lesson.before.fault}, is {lesson.after.fault}"
            f" p={lesson.after.probability:.2f}",
            f"rule file: {printable(str(lesson.path))}",
        ]
    )
    return Page("LogLesson", body, text, names=(rule.name,))


def explanation_page(explanation: ShownExplanation) -> Page:
    """The answer of `brctl logs explain`."""
    rows = tuple(_line_document(item) for item in explanation.lines)
    body: Mapping[str, Json] = {
        "verdict": verdict_document(explanation.verdict),
        "lines": list(rows),
    }
    text = [headline(explanation.verdict)]
    for item in explanation.lines:
        text.append(f"line {item.line.number}: {printable(item.line.text.strip(), 160)}")
        text += [_near(rule) for rule in item.near] or ["  like nothing known"]
    return Page("LogExplanation", body, "\n".join(text), rows=rows)


def _line_document(item: ShownExplainedLine) -> Mapping[str, Json]:
    return {
        "line": item.line.number,
        "text": item.line.text,
        "count": item.line.alike,
        "surprise_bits": round(item.line.score, 2),
        "near": [
            {
                "rule": rule.name,
                "class": rule.fault.value if rule.fault else None,
                "alike": rule.alike,
                "shared": list(rule.shared),
            }
            for rule in item.near
        ],
    }


def _near(rule: ShownNearRule) -> str:
    return f"  {rule.alike:.2f} {rule.name} ({rule.fault}): {', '.join(rule.shared[:6])}"
