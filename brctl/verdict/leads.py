"""Where to look when nothing names the cause: the likeliest ones, and what would settle it.

A process that was killed or left without a word says nothing of who did it. Shares are the own
judgement of the field's order: memory comes first, then a scheduler or a person.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from brctl.model.evidence import Evidence, Weight
from brctl.model.evidence_kinds import (
    CLOCK_SKEW,
    CRASHED_FIRST,
    GONE_FIRST,
    KILLED_FIRST,
    LEFT_FIRST,
    TOLD_FIRST,
)
from brctl.model.fault import FaultClass
from brctl.model.verdict import Alternative


@dataclass(frozen=True, slots=True)
class Lead:
    """What an end without a word may come from.

    Attributes:
        causes: Classes with their share of such ends, likeliest first.
        settle: Commands that tell them apart; `{node}` is replaced.
    """

    causes: tuple[tuple[FaultClass, float], ...]
    settle: tuple[str, ...]


LEADS = {
    KILLED_FIRST: Lead(
        (
            (FaultClass.CPU_OOM, 0.5),
            (FaultClass.PREEMPTION_SIGTERM, 0.25),
            (FaultClass.USER_CODE, 0.1),
        ),
        (
            "brctl run -w {node} -- 'journalctl -k --since -1h | grep -i -e oom -e killed'",
            "brctl run -w {node} -- 'journalctl --since -1h -u slurmd -u kubelet; last -x | head'",
        ),
    ),
    GONE_FIRST: Lead(
        (
            (FaultClass.NODE_FAILURE, 0.4),
            (FaultClass.PREEMPTION_SIGTERM, 0.2),
            (FaultClass.USER_CODE, 0.2),
        ),
        (
            "brctl run -w {node} -- 'uptime -s; last -x | head'",
            "brctl run -w {node} -- 'journalctl --since -1h | grep -i -e python -e slurm'",
        ),
    ),
    CRASHED_FIRST: Lead(
        (
            (FaultClass.USER_CODE, 0.5),
            (FaultClass.ENVIRONMENT_MISMATCH, 0.2),
            (FaultClass.NODE_FAILURE, 0.1),
        ),
        (
            "brctl run -w {node} -- 'coredumpctl list --since -1h || ls -t /var/crash | head'",
            "brctl run -w {node} -- 'journalctl -k --since -1h | grep -i -e segfault -e mce'",
        ),
    ),
    TOLD_FIRST: Lead(
        ((FaultClass.PREEMPTION_SIGTERM, 0.5), (FaultClass.CPU_OOM, 0.2)),
        (
            "brctl run -w {node} -- 'journalctl --since -1h -u slurmd -u kubelet; last -x | head'",
            "brctl run -w {node} -- 'journalctl --since -1h | grep -i -e oomd -e earlyoom -e stop'",
        ),
    ),
    LEFT_FIRST: Lead(
        ((FaultClass.USER_CODE, 0.6), (FaultClass.DATA_LOADER, 0.2)),
        (
            "brctl job show",
            "brctl run -w {node} -- 'journalctl --since -1h | grep -i python'",
        ),
    ),
}


CROSS_CHECKS = {CLOCK_SKEW: "brctl run -w {node} -- 'chronyc tracking || timedatectl status'"}
"""What a person runs beside a verdict that rests on evidence of this kind."""


def cross_checks(chain: Iterable[Evidence], nodes: Collection[str]) -> tuple[str, ...]:
    """Commands for what speaks against these nodes."""
    found = (
        CROSS_CHECKS[item.kind].format(node=item.subject.node)
        for item in chain
        if item.kind in CROSS_CHECKS and item.weight is Weight.HINTS and item.subject.node in nodes
    )
    return tuple(dict.fromkeys(found))[:2]


def leads(chain: Iterable[Evidence]) -> tuple[Alternative, ...]:
    """The likeliest causes of an end without a word, on the node where it came first."""
    return tuple(
        Alternative(fault, (item.subject.node,), share)
        for item in _first_ends(chain)
        for fault, share in LEADS[item.kind].causes
    )[:3]


def settling(chain: Iterable[Evidence]) -> tuple[str, ...]:
    """The commands that would settle it."""
    found = [
        command.format(node=item.subject.node)
        for item in _first_ends(chain)
        for command in LEADS[item.kind].settle
    ]
    return tuple(found[:2])


def _first_ends(chain: Iterable[Evidence]) -> Sequence[Evidence]:
    return [item for item in chain if item.kind in LEADS]
