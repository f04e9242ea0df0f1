"""Why a recorded look is told otherwise today: what speaks for it only then, or only now."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.verdict import Verdict
from brctl.view.notices.page import Json, Page
from brctl.view.recorded.replay import JudgedAgain, exit_of
from brctl.view.redact import redact
from brctl.view.text import printable

_WIDTH = 300


@dataclass(frozen=True, slots=True)
class ListDifference:
    """One list of a verdict's, then and now."""

    what: str
    only_then: tuple[str, ...]
    only_now: tuple[str, ...]


_LISTS: Mapping[str, Callable[[Verdict], Iterable[str]]] = {
    "evidence": lambda v: (
        f"{e.subject} {e.kind}, {e.weight.value}: {e.text}" for e in v.evidence
    ),
    "ruled out": lambda v: (f"{r.fault.value}: {r.why}" for r in v.ruled_out),
    "not checked": lambda v: (f"{g.subject} {g.what}: {g.why}" for g in v.not_checked),
}  # fmt: skip


def differences(look: JudgedAgain) -> tuple[ListDifference, ...]:
    """What one look's verdicts rest on then or now, and not both."""
    found = (
        _difference("verdict", [_headline(v) for v in look.then], [_headline(v) for v in look.now]),
        *(
            _difference(what, _all(look.then, lines_of), _all(look.now, lines_of))
            for what, lines_of in _LISTS.items()
        ),
    )
    return tuple(one for one in found if one.only_then or one.only_now)


def _headline(verdict: Verdict) -> str:
    nodes = " ".join(verdict.nodes) or "-"
    word, chance = verdict.confidence.value.upper(), verdict.probability
    return f"{word} {verdict.fault.value} {nodes} ({chance:.2f}) {verdict.action.value}"


def _all(verdicts: Sequence[Verdict], lines_of: Callable[[Verdict], Iterable[str]]) -> list[str]:
    return [redact(line) for verdict in verdicts for line in lines_of(verdict)]


def _difference(what: str, then: Sequence[str], now: Sequence[str]) -> ListDifference:
    ordered_then, ordered_now = dict.fromkeys(then), dict.fromkeys(now)
    return ListDifference(
        what,
        tuple(line for line in ordered_then if line not in ordered_now),
        tuple(line for line in ordered_now if line not in ordered_then),
    )


def diff_page(file: str, version: str, rules: str, looks: Sequence[JudgedAgain]) -> Page:
    """The answer of `brctl incident diff`."""
    lines: list[str] = []
    documents: list[Json] = []
    for look in looks:
        found = differences(look)
        lines += [
            f"{look.id}  {look.made_by} -> {version}{rules and ' with '}{rules}: {look.change}"
        ]
        for one in found:
            lines.append(f"  {one.what}")
            lines += [f"    - {printable(line, _WIDTH)}" for line in one.only_then]
            lines += [f"    + {printable(line, _WIDTH)}" for line in one.only_now]
        documents.append(_document(look, found))
    body: dict[str, Json] = {
        "file": file, "version": version, "rules": rules or None, "looks": documents,
    }  # fmt: skip
    exit_code = exit_of([look.change for look in looks])
    return Page("IncidentDiff", body, "\n".join(lines), exit_code)


def _document(look: JudgedAgain, found: Sequence[ListDifference]) -> dict[str, Json]:
    differs: list[Json] = [
        {"what": one.what, "then": list(one.only_then), "now": list(one.only_now)} for one in found
    ]
    return {"id": look.id, "made_by": look.made_by, "change": look.change, "differences": differs}
