"""A recorded incident judged again: what was told then, what would be told now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.nodeset import fold
from brctl.model.verdict import Verdict
from brctl.view.documents import verdict_document
from brctl.view.notices.page import Json, Page
from brctl.view.redact import redact_document
from brctl.view.text import columns, printable

SAME, CONFIDENCE, CAUSE, ACCUSES, LOST, DETAILS = (
    "same", "other confidence", "other cause", "accuses another node", "cannot tell any more",
    "other evidence",
)  # fmt: skip
_CUTS_SHOWN = 10
_UNSURE = (FaultClass.UNKNOWN, FaultClass.NO_FAULT)


@dataclass(frozen=True, slots=True)
class JudgedAgain:
    """One look, as it was told and as it is judged now.

    Attributes:
        unrecorded: Checks that were not asked then.
    """

    id: str
    made_by: str
    then: tuple[Verdict, ...]
    now: tuple[Verdict, ...]
    unrecorded: tuple[str, ...] = ()

    @property
    def change(self) -> str:
        """What became of the likeliest verdict, in a word or two."""
        return self._in_detail() if self.headline == SAME else self.headline

    @property
    def headline(self) -> str:
        """The same of cause, nodes and probability alone."""
        if not self.then or not self.now:
            return SAME if self.then == self.now else CAUSE
        return _change(self.then[0], self.now[0]) or SAME

    def _in_detail(self) -> str:
        return SAME if _compared(self.then) == _compared(self.now) else DETAILS


def _change(then: Verdict, now: Verdict) -> str:
    if then.fault is not now.fault:
        return LOST if now.fault is FaultClass.UNKNOWN else CAUSE
    if set(then.nodes) != set(now.nodes):
        return ACCUSES
    return CONFIDENCE if then.probability != now.probability else ""


def _compared(verdicts: Sequence[Verdict]) -> list[object]:
    """Without ids, which are made of the nodes' names: pseudonyms change no verdict."""
    return _documents([replace(verdict, id="V") for verdict in verdicts])


def _documents(verdicts: Sequence[Verdict]) -> list[object]:
    """What is compared; a recording is redacted, and so is what is made of it."""
    return [redact_document(verdict_document(verdict)) for verdict in verdicts]


def replay_page(file: str, digest: str, version: str, looks: Sequence[JudgedAgain]) -> Page:
    """The answer of `brctl incident replay`."""
    rows: list[Sequence[str]] = []
    for look in looks:
        rows.append((look.id, "then", look.made_by, *_cells(look.then), ""))
        rows.append(("", "now", version, *_cells(look.now), look.change))
    unrecorded = sorted({name for look in looks for name in look.unrecorded})
    lines = [columns(rows)]
    if unrecorded:
        lines.append(f"not recorded: {printable(', '.join(unrecorded), 300)}")
    documents: list[Json] = [
        {
            "id": look.id,
            "made_by": look.made_by,
            "change": look.change,
            "then": _documents(look.then),
            "now": _documents(look.now),
            "not_recorded": list(look.unrecorded),
        }
        for look in looks
    ]
    body = {"file": file, "digest": digest, "version": version, "looks": documents}
    return Page("IncidentReplay", body, "\n".join(lines), exit_of([look.change for look in looks]))


def _cells(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    if not verdicts:
        return ("-", "-", "-")
    first = verdicts[0]
    more = f" and {len(verdicts) - 1} more" if len(verdicts) > 1 else ""
    where = printable(fold(first.nodes) or "-", 40)
    return first.confidence.value.upper(), f"{first.fault.value}{more}", where


def exit_of(changes: Sequence[str]) -> ExitCode:
    """0 the same, 1 changed, 3 a cause that was told is not found any more."""
    if LOST in changes:
        return ExitCode.UNKNOWN
    return ExitCode.OK if set(changes) <= {SAME} else ExitCode.WARNING


def counted(counts: Mapping[str, int]) -> str:
    """`3 token, 1 header`."""
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"


def record_page(
    file: str,
    size: int,
    digest: str,
    looks: Sequence[str],
    taken: Mapping[str, int],
    cuts: Sequence[str],
) -> Page:
    """The answer of `brctl incident record`; 1 where something is not in the file."""
    text = (
        f"{file}: {len(looks)} looks, {size / (1 << 20):.1f} MiB, id {digest[:12]}\n"
        f"taken out: {counted(taken)}; names of nodes and users are still in it"
    )
    text += "".join(f"\nleft out: {printable(cut, 200)}" for cut in cuts)
    body = {
        "file": file,
        "bytes": size,
        "digest": digest,
        "looks": list(looks),
        "taken_out": dict(taken),
        "cuts": list(cuts),
    }
    exit_code = ExitCode.WARNING if cuts else ExitCode.OK
    return Page("IncidentRecord", body, text, exit_code, next=(f"brctl incident replay {file}",))


def import_page(
    file: str,
    size: int,
    kind: str,
    logs: int,
    hosts: Sequence[str],
    cuts: Sequence[str],
    verdict: Verdict,
) -> Page:
    """The answer of `brctl incident import`; 1 where something is not in the file."""
    shown = " ".join(_cells((verdict,)))
    where = printable(fold(tuple(hosts)) or "no host named", 60)
    text = f"{file}: {kind}, {logs} logs, {where}\nby its logs alone: {shown}"
    text += "".join(f"\nleft out: {printable(cut, 200)}" for cut in cuts[:_CUTS_SHOWN])
    text += f"\n{len(cuts) - _CUTS_SHOWN} more left out" if len(cuts) > _CUTS_SHOWN else ""
    body: dict[str, Json] = {
        "file": file,
        "bytes": size,
        "source": kind,
        "logs": logs,
        "hosts": list(hosts),
        "cuts": list(cuts),
        "verdict": _documents((verdict,))[0],
    }
    exit_code = ExitCode.WARNING if cuts else ExitCode.OK
    return Page("IncidentImport", body, text, exit_code, next=(f"brctl incident replay {file}",))
