"""Rows of a watcher's record, and its lines as people read them."""

from collections.abc import Callable, Iterable, Mapping

from brctl.model.nodeset import fold
from brctl.model.units import rfc3339, utc_text
from brctl.model.watch.state import GateAnswer, WatchRecord
from brctl.view.text import printable

DOES = {"observe": "would fix", "propose": "proposed", "act": "fix started"}
"""What each mode is called once it has happened."""

FAILED = {"propose": "proposed to nobody", "act": "fix not started"}
"""The same where nobody could be told, or `fix` refused or did not say in time that it runs."""


def what_became(mode: str, *, done: bool) -> str:
    """A decision in words, by whether what it asked for was done."""
    return (DOES if done else FAILED).get(mode, "decided")


def gate_rows(gates: Iterable[GateAnswer]) -> list[Mapping[str, object]]:
    """Every gate with its answer, as it stands in the record."""
    return [{"gate": gate.gate, "open": gate.open, "why": gate.why} for gate in gates]


def record_row(record: WatchRecord) -> Mapping[str, object]:
    """One line of the record as a document holds it."""
    return {"seq": record.seq, "at": rfc3339(record.at), "kind": record.kind, **record.fields}


def record_line(record: WatchRecord) -> str:
    """One line of the record for people."""
    return printable(f"{utc_text(record.at)}  {record_words(record)}", 300)


def record_words(record: WatchRecord) -> str:
    """What a line of the record says, without its moment; not yet made harmless."""
    return _WORDS.get(record.kind, _plain)(record)


def _plain(record: WatchRecord) -> str:
    return f"{record.kind}  {record.text('text') or record.text('why')}"


def _suspicion(record: WatchRecord) -> str:
    rule, subject = record.text("rule"), record.text("subject")
    return f"{record.kind}  {rule} {subject}: {record.text('text')}"


def _verdict(record: WatchRecord) -> str:
    where = fold(record.names("nodes")) or "no node"
    sure = record.text("confidence").upper()
    return f"verdict  {record.text('verdict')} {sure} {record.text('title')}: {where}"


def _decision(record: WatchRecord) -> str:
    held, said = record.text("held"), record.text("said")
    became = what_became(record.text("mode"), done=record.fields.get("done") is not False)
    parts = [f"{became}  {record.text('verdict')}"]
    parts += [f"held: {held}"] if held else []
    parts += [said] if said else []
    return "  ".join(parts)


def _start(record: WatchRecord) -> str:
    problem = record.text("problem")
    said = f"start  {record.text('holder')}, {record.count('nodes')} nodes, {record.text('mode')}"
    return f"{said}; only observing: {problem}" if problem else said


def _nodes(record: WatchRecord) -> str:
    return f"{record.kind}  {fold(record.names('nodes'))}"


_WORDS: Mapping[str, Callable[[WatchRecord], str]] = {
    "start": _start, "suspicion": _suspicion, "confirmed": _suspicion, "ended": _suspicion,
    "verdict": _verdict, "decision": _decision, "quiet": _nodes,
}  # fmt: skip
