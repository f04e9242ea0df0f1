"""Host keys as people compare them: state, node, fingerprint."""

from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode, worst
from brctl.model.nodeset import fold
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

Row = tuple[str, str, str, str, str]
"""Node, state, kind of key, fingerprint, detail."""

_EXIT = {
    "known": ExitCode.OK,
    "new": ExitCode.OK,
    "silent": ExitCode.UNKNOWN,
    "changed": ExitCode.CRITICAL,
    "revoked": ExitCode.CRITICAL,
}


def host_keys_page(rows: Sequence[Row], known_hosts: str, *, written: bool) -> Page:
    """The answer of `brctl inventory trust`; nodes that show the same share a row."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for node, state, kind, fingerprint, detail in rows:
        groups.setdefault((state, kind, fingerprint, printable(detail, 160)), []).append(node)
    table = [("STATE", "NODES", "KEY", "FINGERPRINT", "")]
    for (state, kind, fingerprint, detail), nodes in sorted(groups.items()):
        table.append((state, fold(nodes), kind, fingerprint, detail))
    fresh = sum(state == "new" for _, state, *_ in rows)
    ending = (
        f"{fresh} keys added to {known_hosts}"
        if written
        else f"nothing was written; --yes adds the {fresh} new keys to {known_hosts}"
    )
    names = ("node", "state", "kind", "fingerprint", "detail")
    keys = [dict(zip(names, row, strict=True)) for row in rows]
    return Page(
        "HostKeys",
        {"known_hosts": known_hosts, "written": written, "keys": keys},
        f"{columns(table)}\n{ending}",
        exit_code=worst(_EXIT[state] for _, state, *_ in rows),
        rows=tuple(keys),
    )
