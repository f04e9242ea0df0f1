"""Silence of most nodes at once: so many do not die together, so it is what they have in common.

The controller's own network, its VPN, its name servers, its keys: all of them silence every node,
and none of them is a node's fault. What a node says is believed; what it does not say is not held
against it while most say nothing. The same holds for all nodes behind one gateway: it may be dead,
broken, or somebody else's, and then what is no answer of theirs is not held against them either.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from brctl.model.command import Outcome
from brctl.model.inventory import Node
from brctl.model.sweeps.reach import UnreachedTogether
from brctl.model.sweeps.report import NodeReport

LEAST_UNREACHED = 2
"""One node that does not answer is a node, also where nobody else was asked (own)."""

_GATEWAY = "gateway"
_PLACES = (_GATEWAY, "leaf", "rack", "row", "zone")
"""What nodes can lose together, the narrowest way to them first; all but the gateway are labels."""


@dataclass(frozen=True, slots=True)
class _Reason:
    """One way of not being reached.

    Attributes:
        outcomes: How the attempt ended.
        said: Words of ours in its detail; "" for any.
        words: The reason, for people.
        ask: The command that tells more; `{address}` and `{node}` are replaced.
    """

    outcomes: tuple[Outcome, ...]
    said: str
    words: str
    ask: str


_O = Outcome
_REASONS = (
    _Reason((_O.UNREACHABLE, _O.CONNECT_TIMED_OUT), "resolve", "its name is not resolved (DNS)",
            "getent hosts {address}"),
    _Reason((_O.UNREACHABLE, _O.REFUSED), "jump host", "its jump host is not reached",
            "brctl nodes show {node}"),
    _Reason((_O.UNREACHABLE,), "gateway", "its gateway is not reached", "brctl nodes show {node}"),
    _Reason((_O.UNREACHABLE,), "this machine", "this machine is short of something",
            "brctl doctor"),
    _Reason((_O.UNREACHABLE,), "", "no route from here (network, VPN)", "ip route get {address}"),
    _Reason((_O.CONNECT_TIMED_OUT,), "", "no TCP connection (route, firewall, VPN)",
            "ip route get {address}"),
    _Reason((_O.REFUSED,), "", "the connection is refused (sshd, a firewall, a wrong address)",
            "ssh -v {address} true"),
    _Reason((_O.LOGIN_TIMED_OUT,), "", "connected, and no login in time (directory, home, sshd)",
            "ssh -v {address} true"),
    _Reason((_O.AUTHENTICATION_FAILED,), "", "the login is not accepted (key, agent, account)",
            "brctl doctor ssh"),
    _Reason((_O.HOST_KEY_MISMATCH,), "", "another host key (known_hosts, or DNS leads elsewhere)",
            "brctl doctor ssh"),
    _Reason((_O.DIED,), "", "the connection broke", "ip route get {address}"),
)  # fmt: skip
"""The first that fits counts. What is no contact at all is here; a node that was logged in to and
was slow or babbled was reached."""
_ODD = _Reason(
    (_O.COMMAND_TIMED_OUT, _O.OUTPUT_OVER_LIMIT, _O.UNPARSABLE), "", "what came is no answer",
    "brctl nodes show {node}",
)  # fmt: skip
"""Counts only where it is all that comes through one gateway."""


def unreached_together(
    reports: Iterable[NodeReport], nodes: Mapping[str, Node]
) -> UnreachedTogether | None:
    """What most nodes' silence says, or that of all behind a gateway; None where most are reached.

    Args:
        reports: Of everybody who was asked.
        nodes: The inventory, for addresses and for what nodes share.
    """
    asked = list(reports)
    found = [(report, reason) for report in asked if (reason := _reason(report)) is not None]
    if len(found) < LEAST_UNREACHED or 2 * len(found) <= len(asked):
        found = _behind_failed_gateways(asked, nodes)
    if not found:
        return None
    counted = Counter(reason for _, reason in found).most_common()
    unreached = tuple(report.node for report, _ in found)
    reached = {report.node for report in asked} - set(unreached)
    asks = [_ask(reason, next(r.node for r, why in found if why is reason), nodes)
            for reason, _ in counted]  # fmt: skip
    return UnreachedTogether(
        nodes=unreached,
        asked=len(asked),
        reasons={reason.words: count for reason, count in counted},
        shared=_shared(unreached, reached, nodes),
        settle=tuple(dict.fromkeys(asks))[:2],
    )


def _behind_failed_gateways(
    asked: Sequence[NodeReport], nodes: Mapping[str, Node]
) -> list[tuple[NodeReport, _Reason]]:
    """All that was asked through gateways from behind which no node answered."""
    through: dict[str, list[tuple[NodeReport, _Reason | None]]] = {}
    for report in asked:
        via = _place(nodes.get(report.node), _GATEWAY)
        odd = _ODD if report.outcome in _ODD.outcomes else None
        through.setdefault(via, []).append((report, _reason(report) or odd))
    return [
        (report, reason)
        for via, rows in through.items()
        if via and len(rows) >= LEAST_UNREACHED and all(why is not None for _, why in rows)
        for report, reason in rows
        if reason is not None
    ]


def _reason(report: NodeReport) -> _Reason | None:
    return next(
        (r for r in _REASONS if report.outcome in r.outcomes and r.said in report.detail), None
    )


def _ask(reason: _Reason, node: str, nodes: Mapping[str, Node]) -> str:
    address = nodes[node].address if node in nodes else node
    return reason.ask.format(node=node, address=address)


def _shared(unreached: Sequence[str], reached: set[str], nodes: Mapping[str, Node]) -> str:
    """What exactly the unreached ones share; without anybody reached it tells nothing."""
    for label in _PLACES if reached else ():
        theirs = {_place(nodes.get(name), label) for name in unreached}
        others = {_place(nodes.get(name), label) for name in reached}
        alone = len(theirs) == 1 or label == _GATEWAY
        if alone and "" not in theirs and not theirs & others:
            return f"{label} {', '.join(sorted(theirs))}"
    return ""


def _place(node: Node | None, label: str) -> str:
    if node is None:
        return ""
    return node.via if label == _GATEWAY else node.labels.get(label, "")
