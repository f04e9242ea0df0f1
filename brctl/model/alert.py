"""An alert from outside, and the incident it opens here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert as Alertmanager's webhook tells it; everything in it is hostile text.

    Attributes:
        fingerprint: Alertmanager's identity of it, stable over repeats.
        ends_at: When it was resolved; None while it fires.
    """

    fingerprint: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.labels.get("alertname", "alert")

    @property
    def summary(self) -> str:
        """What a person reads first."""
        words = (self.annotations.get(key) for key in ("summary", "description", "message"))
        return next((text for text in words if text), self.name)


@dataclass(frozen=True, slots=True)
class AlertIncident:
    """What an alert has opened.

    Attributes:
        id: `I-` and six letters, made from fingerprint and start, so that a repeat finds it.
        nodes: The nodes of our inventory that its labels name.
        verdicts: What a diagnosis of it found.
    """

    id: str
    source: str
    name: str
    summary: str
    fingerprint: str
    starts_at: datetime
    opened_at: datetime
    nodes: tuple[str, ...] = ()
    job: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    closed_at: datetime | None = None
    verdicts: tuple[str, ...] = ()


@dataclass(slots=True)
class Ingested:
    """What became of the alerts of one body.

    Attributes:
        repeated: Firing, and known already.
        ignored: Resolved, and nothing was open under them.
    """

    opened: list[AlertIncident] = field(default_factory=list)
    repeated: list[AlertIncident] = field(default_factory=list)
    closed: list[AlertIncident] = field(default_factory=list)
    ignored: list[Alert] = field(default_factory=list)
