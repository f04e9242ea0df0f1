"""Documents of `brctl watch`."""

from typing import Any, TypedDict

from brctl.view.schema import Envelope


class WatchWindowDocument(TypedDict):
    """One window of the breaker: nodes acted on, of those allowed."""

    within: str
    taken: int
    limit: int


class WatchBreakerDocument(TypedDict):
    """`open` says when and why it opened; null while it is closed."""

    open: str | None
    windows: list[WatchWindowDocument]


class WatchSuspicionDocument(TypedDict):
    """Something seen and not settled."""

    rule: str
    subject: str
    since: str
    looks: int
    confirmed: bool
    text: str
    verdicts: list[str]


class WatchStatusDocument(Envelope):
    """`brctl watch status`; a record has `seq`, `at`, `kind`, and keys of its kind."""

    alive: bool
    leader: str | None
    mode: str | None
    at: str | None
    nodes: int | None
    talking: int | None
    reconnecting: dict[str, str]
    silent: list[str]
    cpu_percent_a_node: float | None
    problem: str | None
    scheduler: str | None
    network: str | None
    crowds: dict[str, list[str]]
    untold: dict[str, str]
    breaker: WatchBreakerDocument
    quiet: dict[str, str]
    suspicions: list[WatchSuspicionDocument]
    records: list[dict[str, Any]]


WatchRuleDocument = TypedDict(
    "WatchRuleDocument",
    {
        "rule": str,
        "class": str,
        "mode": str,
        "every_seconds": float,
        "looks": int,
        "title": str,
    },
)


class BreakerLimitDocument(TypedDict):
    """Distinct nodes that may be acted on within a time, as a share of the fleet."""

    within_seconds: float
    share: float
    least: int


class WatchLimitsDocument(TypedDict):
    """The figures of the gates."""

    breaker: list[BreakerLimitDocument]
    attempts_a_day: int
    restarts: int
    restarts_within_seconds: float
    restart_steps: int
    spares_kept: int
    quiet_seconds: float
    start_up_seconds: float


class WatchPolicyDocument(Envelope):
    """`brctl watch policy`."""

    origin: str | None
    mode: str
    rules: list[WatchRuleDocument]
    classes: dict[str, str]
    freeze: list[str]
    limits: WatchLimitsDocument


RejudgedDocument = TypedDict(
    "RejudgedDocument",
    {
        "at": str,
        "verdict": str,
        "rule": str,
        "class": str,
        "nodes": list[str],
        "was": str,
        "now": str,
        "held": str | None,
        "right": bool | None,
    },
)


class WatchReplayDocument(Envelope):
    """`brctl watch replay`; `right` counts the acts whose verdict was confirmed since."""

    origin: str | None
    decisions: list[RejudgedDocument]
    acts: int
    judged: int
    right: int


class WatchStopDocument(Envelope):
    """`brctl watch stop`; null when watching is allowed."""

    stopped: str | None
