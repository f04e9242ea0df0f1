"""`brctl doctor ssh`: nodes that are reached in the same way share a line."""

from collections.abc import Sequence

from brctl.model.exit_codes import worst
from brctl.model.nodeset import fold
from brctl.model.ssh_route import KeyTrust, SshRoute
from brctl.model.sweeps.sweep import EXIT_OF, Health
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

_HEALTH = {
    KeyTrust.TRUSTED: Health.OK,
    KeyTrust.AUTHORITY: Health.OK,
    KeyTrust.NOT_NEEDED: Health.OK,
    KeyTrust.LEFT_TO_SSH: Health.UNKNOWN,
    KeyTrust.MISSING: Health.CRITICAL,
    KeyTrust.REVOKED: Health.CRITICAL,
}
_WORDS = {Health.OK: "ok", Health.UNKNOWN: "UNKNOWN", Health.CRITICAL: "FAIL"}
_KEY_TEXT = {
    KeyTrust.TRUSTED: "host key known",
    KeyTrust.AUTHORITY: "host key by an authority that is known",
    KeyTrust.NOT_NEEDED: "no host key needed",
    KeyTrust.LEFT_TO_SSH: "host key left to ssh: its configuration may name it otherwise",
    KeyTrust.MISSING: "NO host key known: every connection will be refused by us",
    KeyTrust.REVOKED: "host key REVOKED",
}


def doctor_ssh_page(routes: Sequence[SshRoute], files: Sequence[str]) -> Page:
    """The answer of `brctl doctor ssh`; exit 2 when a node's key is not known."""
    gathered: dict[tuple[str, str, KeyTrust], list[str]] = {}
    for route in routes:
        gathered.setdefault((route.transport, route.why, route.key), []).append(route.node)
    order = sorted(gathered.items(), key=lambda item: list(_HEALTH).index(item[0][2]), reverse=True)
    rows = [
        (_WORDS[_HEALTH[key]], fold(nodes), transport, _KEY_TEXT[key], f"({printable(why, 120)})")
        for (transport, why, key), nodes in order
    ]
    known = sum(_HEALTH[route.key] is Health.OK for route in routes)
    read = ", ".join(files) or "no file: neither configured nor ~/.ssh/known_hosts exists"
    head = f"host keys of {known} of {len(routes)} hosts known; looked into {read}"
    documents = tuple(
        {"node": r.node, "transport": r.transport, "why": r.why, "host_key": r.key.value}
        for r in routes
    )
    missing = [route.node for route in routes if route.key is KeyTrust.MISSING]
    body = {"known_hosts": list(files), "routes": list(documents)}
    code = worst(EXIT_OF[_HEALTH[route.key]] for route in routes)
    next_ = (f"brctl inventory trust -w {fold(missing)}",) if missing else ()
    text = "\n".join([columns(rows), head])
    return Page("DoctorSsh", body, text, code, tuple(missing), documents, next_)
