"""The same job with the same faults, watched and unwatched: how much of its time was training?

    python -m tests.bench.ettr [--minutes 15] [--fault gpu-lost ...] [--only watched]

Each half in a lab of its own, its faults at the same seconds, `brctl report ettr` at its end. Where
nobody watches, cron runs `dx` each minute, and a person who is told of a verdict comes after
`--person` seconds, looks again and fixes what is found. The lab's steps take a fraction of a
second: what is compared is the time without new steps, and not what a step is worth.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import nan
from pathlib import Path

from tests.bench.watched_lab import WatchedLab

FAULTS = ("gpu-lost", "rank-crash", "gpu-ecc", "rank-hang", "node-dead")
NODES, STANDBYS = 4, 5
CRON_S = 60.0
LIMITS = ", attempts_a_day: 9, restarts: 9, breaker: [{within: 5m, share: 100%}]"
"""Five faults in a quarter of an hour on four nodes are what the breaker is there for."""


@dataclass(frozen=True, slots=True)
class Half:
    """What one of the two gave."""

    ettr: float
    steps: int
    books_s: Mapping[str, float]
    incidents: int


class CronAndPerson:
    """Looks each minute, and mends what is found once somebody has come."""

    def __init__(self, lab: WatchedLab, comes_after_s: float, now: Callable[[], float]) -> None:
        self._lab, self._comes_after_s, self._now = lab, comes_after_s, now
        self._looks_at = now() + CRON_S
        self._comes_at: float | None = None

    def go_on(self) -> None:
        """Whatever is due."""
        if self._comes_at is not None and self._now() >= self._comes_at:
            self._comes_at = None
            self._mend()
        if self._now() >= self._looks_at:
            self._looks_at += CRON_S
            if self._comes_at is None and self._fixable():
                self._comes_at = self._now() + self._comes_after_s

    def _fixable(self) -> Mapping[str, object] | None:
        """The first verdict that names a playbook, while the job needs one."""
        verdicts = self._lab.document("dx").get("verdicts")
        found = [v for v in verdicts if _playbook(v)] if isinstance(verdicts, list) else []
        return dict(found[0]) if found else None

    def _mend(self) -> None:
        verdict = self._fixable()
        if verdict is None:
            return
        verb = _playbook(verdict).partition("-")[0]
        suspects = verdict.get("suspects")
        nodes = suspects.get("nodes") if isinstance(suspects, dict) else ()
        words = f"{verb} {len(nodes)}" if nodes else verb
        done = self._lab.brctl("fix", str(verdict["id"]), "--confirm", words)
        if done.returncode == 64:
            self._lab.brctl("fix", str(verdict["id"]), "--confirm", verb)


def _playbook(verdict: Mapping[str, object]) -> str:
    action = verdict.get("action")
    return str(action.get("playbook") or "") if isinstance(action, dict) else ""


def run(minutes: float, faults: Sequence[str], person_s: float, *, is_watched: bool) -> Half:
    """One half, from the job's start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        lab = WatchedLab(Path(folder), NODES, STANDBYS, LIMITS)
        with lab.training(), lab.watched() if is_watched else nullcontext():
            began = time.monotonic()
            person = None if is_watched else CronAndPerson(lab, person_s, time.monotonic)
            pending = list(_schedule(minutes, faults))
            while time.monotonic() - began < 60 * minutes:
                if pending and time.monotonic() - began >= pending[0][0]:
                    _break(lab, pending.pop(0)[1])
                if person is not None:
                    person.go_on()
                time.sleep(0.5)
            return _half(lab)


def _schedule(minutes: float, faults: Sequence[str]) -> Iterator[tuple[float, str]]:
    """Each fault in the middle of its share of the time."""
    share_s = 60 * minutes / len(faults)
    return ((share_s * (number + 0.3), fault) for number, fault in enumerate(faults))


def _break(lab: WatchedLab, fault: str) -> None:
    """Strike the second node of those on which the job runs now."""
    nodes = lab.job().get("nodes")
    node = nodes[1] if isinstance(nodes, list) else "n2"
    struck = lab.brctl("lab", "break", fault, str(node))
    print(f"  {fault} on {node}{'' if struck.returncode == 0 else ': ' + struck.stderr[-200:]}")


def _half(lab: WatchedLab) -> Half:
    report = lab.document("report", "ettr", "--job", "lab-train", "--since", "1d")
    books, incidents = report.get("books_seconds"), report.get("incidents")
    ettr = report.get("ettr")
    return Half(
        ettr=nan if ettr is None else float(str(ettr)),
        steps=int(str(lab.job().get("step") or 0)),
        books_s=books if isinstance(books, dict) else {},
        incidents=len(incidents) if isinstance(incidents, list) else 0,
    )


def show(name: str, half: Half) -> None:
    books = ", ".join(f"{book} {seconds:.0f}" for book, seconds in half.books_s.items() if seconds)
    print(f"{name}: ETTR {half.ettr:.3f}, {half.steps} steps, {half.incidents} incidents")
    print(f"  seconds: {books}", flush=True)


def main() -> int:
    """Print both halves; 1 where watching did not help."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--fault", nargs="*", default=list(FAULTS))
    parser.add_argument("--person", type=float, default=120.0, help="seconds until somebody comes")
    parser.add_argument("--only", choices=("watched", "unwatched"))
    chosen = parser.parse_args()
    halves: dict[str, Half] = {}
    for name in [chosen.only] if chosen.only else ["unwatched", "watched"]:
        is_watched = name == "watched"
        halves[name] = run(chosen.minutes, chosen.fault, chosen.person, is_watched=is_watched)
        show(name, halves[name])
    if chosen.only:
        return 0
    gained = halves["watched"].ettr - halves["unwatched"].ettr
    print(f"watching gains {100 * gained:.1f} points of ETTR")
    return int(not gained > 0)


if __name__ == "__main__":
    sys.exit(main())
