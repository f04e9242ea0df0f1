"""What was taken out of an incident file and what stands for names, as people and programs read it.

No page here prints a secret; only `names_page` prints an original, at home.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode
from brctl.view.notices.page import Json, Page
from brctl.view.recorded.pseudonyms import NameKind
from brctl.view.recorded.replay import SAME, counted
from brctl.view.text import columns, printable


@dataclass(frozen=True, slots=True)
class RedactionReport:
    """A file for somebody else, and what it cost.

    Attributes:
        places: Of each member, how many lines were changed.
        verdict: What redaction did to the verdict: `SAME`, or a change.
    """

    file: str
    size: int
    digest: str
    profile: str
    taken: Mapping[str, int]
    names: Mapping[str, int]
    places: Mapping[str, int]
    cuts: Sequence[str]
    verdict: str


def redaction_page(report: RedactionReport) -> Page:
    """The answer of `brctl incident redact`; 1 where something is lost or the verdict moved."""
    lines = [
        f"{report.file}: {report.profile}, {report.size / (1 << 20):.1f} MiB, "
        f"id {report.digest[:12]}",
        f"taken out: {counted(report.taken)}",
        f"pseudonyms: {counted(report.names)}; none of the names it tells is left in it",
        f"verdict: {report.verdict}",
        columns([("MEMBER", "LINES CHANGED"), *((n, str(c)) for n, c in report.places.items())]),
        *(f"left out: {printable(cut, 200)}" for cut in report.cuts),
    ]
    body: dict[str, Json] = {
        "file": report.file,
        "bytes": report.size,
        "digest": report.digest,
        "profile": report.profile,
        "taken_out": dict(report.taken),
        "pseudonyms": dict(report.names),
        "members": dict(report.places),
        "cuts": list(report.cuts),
        "verdict": report.verdict,
    }
    sound = report.verdict == SAME and not report.cuts
    exit_code = ExitCode.OK if sound else ExitCode.WARNING
    hint = (f"brctl incident replay {report.file}", "brctl incident names PSEUDONYM")
    return Page("IncidentRedaction", body, "\n".join(lines), exit_code, next=hint)


def names_page(found: Mapping[str, tuple[NameKind, str] | None]) -> Page:
    """The answer of `brctl incident names`; 1 where one was never given."""
    rows: list[Sequence[str]] = [("PSEUDONYM", "KIND", "NAME")]
    rows += [(printable(p, 60), f[0].value if f else "-", printable(f[1], 100) if f else "unknown")
             for p, f in found.items()]  # fmt: skip
    documents: list[Json] = [
        {"pseudonym": p, "kind": f[0].value if f else None, "name": f[1] if f else None}
        for p, f in found.items()
    ]
    exit_code = ExitCode.OK if all(found.values()) else ExitCode.WARNING
    return Page("IncidentNames", {"names": documents}, columns(rows), exit_code)
