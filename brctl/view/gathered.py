"""Answers of many nodes as people read them: identical ones once, silent nodes last."""

import difflib
from collections.abc import Iterable, Mapping, Sequence

from brctl.model.command import CommandResult, Outcome
from brctl.model.exit_codes import ExitCode, worst
from brctl.model.nodeset import fold, natural_key
from brctl.view.alike import fold_alike
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

_LINE_LIMIT = 4000
_DIFF_LINES = 2000
_WAIT_BYTES = 64 << 10
_INTERRUPTED, _NO_ANSWER_YET = "interrupted", "had not answered yet"

Group = tuple[CommandResult, tuple[str, ...]]
"""One answer and the nodes that gave exactly it."""


def gathered_page(
    answers: Iterable[CommandResult], missing: Sequence[str], form: str = "gathered"
) -> Page:
    """The answer of `brctl run`: `gathered`, `lines` or `diff`; `live` after `LiveLines`.

    Args:
        answers: In any order.
        missing: Nodes that had not answered when the command was interrupted.
        form: How identical output is shown.
    """
    listed = sorted(answers, key=lambda answer: natural_key(answer.node))
    answered = [answer for answer in listed if answer.outcome is Outcome.ANSWERED]
    silent = [answer for answer in listed if answer.outcome is not Outcome.ANSWERED]
    text = "\n".join([*FORMS[form](answered), *_partial(silent), *_silent(silent, missing)])
    return Page(
        kind="Answers",
        body={
            "answers": [answer_document(answer) for answer in listed],
            "interrupted": {"nodes": list(missing), "folded": fold(missing)},
        },
        text=text,
        exit_code=_exit_code(answered, bool(silent or missing)),
        names=tuple(answer.node for answer in silent) + tuple(missing),
        rows=(*map(answer_document, listed), *map(missing_document, missing)),
    )


def answer_document(answer: CommandResult) -> Mapping[str, Json]:
    """One node's answer for programs; bytes that are no UTF-8 are replaced."""
    return {
        "node": answer.node,
        "outcome": answer.outcome.value,
        "exit_status": answer.exit_status,
        "stdout": answer.stdout.decode("utf-8", "replace"),
        "stderr": answer.stderr.decode("utf-8", "replace"),
        "seconds": round(answer.seconds, 3),
        "detail": answer.detail,
    }


def missing_document(node: str) -> Mapping[str, Json]:
    """A node that had not answered when the command was interrupted, as a row of its own."""
    unknown = dict.fromkeys(("exit_status", "seconds"))
    return {"node": node, "outcome": _INTERRUPTED, **unknown, "stdout": "", "stderr": "",
            "detail": _NO_ANSWER_YET}  # fmt: skip


def _exit_code(answered: Sequence[CommandResult], silent: bool) -> ExitCode:
    found = {ExitCode.WARNING if answer.exit_status else ExitCode.OK for answer in answered}
    return worst(found | {ExitCode.UNKNOWN} if silent else found)


def _groups(answers: Iterable[CommandResult]) -> list[Group]:
    """Nodes by identical status and output, the largest group first."""
    members: dict[tuple[int | None, bytes, bytes], list[CommandResult]] = {}
    for answer in answers:
        key = (answer.exit_status, answer.stdout, answer.stderr)
        members.setdefault(key, []).append(answer)
    groups = [(group[0], tuple(a.node for a in group)) for group in members.values()]
    return sorted(groups, key=lambda g: (-len(g[1]), natural_key(g[1][0])))


def _blocks(answers: Sequence[CommandResult]) -> list[str]:
    """One header and one output per group of nodes that said the same."""
    lines: list[str] = []
    for answer, nodes in _groups(answers):
        lines += ["---------------", _header(answer, nodes), "---------------"]
        lines += _output(answer)
    return lines


def _each_line(answers: Sequence[CommandResult]) -> list[str]:
    return [f"{a.node}: {line}" for a in answers for line in [*_output(a), *_status(a)]]


def _nothing(_answers: Sequence[CommandResult]) -> list[str]:
    """Their lines went by as they came."""
    return []


def _diff(answers: Sequence[CommandResult]) -> list[str]:
    """The largest group whole, the others as what they say differently."""
    groups = _groups(answers)
    if not groups:
        return []
    reference, most = groups[0]
    lines = ["---------------", _header(reference, most), "---------------", *_output(reference)]
    for answer, nodes in groups[1:]:
        lines += ["---------------", f"{_header(answer, nodes)}  differs:", "---------------"]
        before, after = _output(reference)[:_DIFF_LINES], _output(answer)[:_DIFF_LINES]
        lines += list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
    return lines


class LiveLines:
    """One node's output as lines in the form `lines`, as they come."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._begun = {False: b"", True: b""}

    def feed(self, data: bytes, is_stderr: bool) -> list[str]:
        """The lines that are whole now, and one that is too long to wait for its end."""
        whole, newline, rest = (self._begun[is_stderr] + data).rpartition(b"\n")
        if len(rest) > _WAIT_BYTES:
            whole, newline, rest = whole + newline + rest, b"\n", b""
        self._begun[is_stderr] = rest
        return self._marked(whole + newline, is_stderr)

    def end(self, answer: CommandResult) -> list[str]:
        """What stood without a newline, and how the command ended."""
        begun = [self._marked(self._begun[is_stderr], is_stderr) for is_stderr in (False, True)]
        return [*begun[0], *begun[1], *(f"{self._node}: {text}" for text in _status(answer))]

    def _marked(self, raw: bytes, is_stderr: bool) -> list[str]:
        mark = "stderr: " if is_stderr else ""
        return [f"{self._node}: {mark}{printable(line, _LINE_LIMIT)}" for line in _lines(raw)]


FORMS = {"gathered": _blocks, "lines": _each_line, "diff": _diff, "live": _nothing}


def _header(answer: CommandResult, nodes: Sequence[str]) -> str:
    return "  ".join([f"{fold(nodes)} ({len(nodes)})", *_status(answer)])


def _status(answer: CommandResult) -> list[str]:
    return [f"exit {answer.exit_status}"] if answer.exit_status else []


def _output(answer: CommandResult) -> list[str]:
    """Both streams as lines without control characters; stderr is marked."""
    out = [printable(line, _LINE_LIMIT) for line in _lines(answer.stdout)]
    return out + [f"stderr: {printable(line, _LINE_LIMIT)}" for line in _lines(answer.stderr)]


def _lines(raw: bytes) -> list[str]:
    # Only newlines end a line here: a carriage return must not hide what stands before it.
    text = raw.decode("utf-8", "backslashreplace")
    return text.removesuffix("\n").split("\n") if text else []


def _partial(silent: Sequence[CommandResult]) -> list[str]:
    """What nodes said before they fell silent."""
    spoke = [answer for answer in silent if answer.stdout or answer.stderr]
    lines: list[str] = []
    for answer, nodes in _groups(spoke):
        lines += ["---------------", f"{fold(nodes)} ({len(nodes)})  partial output"]
        lines += ["---------------", *_output(answer)]
    return lines


def _silent(silent: Sequence[CommandResult], missing: Sequence[str]) -> list[str]:
    """The last block: who did not answer, and why."""
    names = [*(answer.node for answer in silent), *missing]
    if not names:
        return []
    said = [(answer.outcome.value, answer.node, answer.detail) for answer in silent]
    said += [(_INTERRUPTED, node, _NO_ANSWER_YET) for node in missing]
    rows = [(e.key, fold(e.nodes), printable(e.text, 160)) for e in fold_alike(said)]
    return [f"no answer ({len(names)}): {fold(names)}", columns(rows, indent="  ")]
