"""One fault in a lab of eight: from the symptom to the machine, and training as if nothing was."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brctl.lab.faults import JUMP_FROM_STEP
from brctl.lab.interrupts import signals_as_exceptions, signals_ignored
from brctl.model.units import parse_duration_s
from tests.bench.evictions import JOB, NODES, WAIT_S, Lab, undisturbed

FAULTS = ("gpu-wrong", "gpu-wrong-comm", "nan-code", "bad-batch", "loss-jump")
OF_A_MACHINE = ("gpu-wrong", "gpu-wrong-comm")
BAD = "n3"
WARM_STEPS, STRUCK_STEPS, AFTER_STEPS = 25, 8, 5
STRUCK_S = 20.0
"""Longest wait for steps with the fault: a job that it ended makes none."""
SYMPTOM_S = 180.0
"""Longest wait for `dx` to speak of numbers: a fault in a call of a hundred shows itself late."""
NUMERIC = ("numeric-nan", "silent-corruption")
BESIDE_SEARCH_S = 600.0
"""What a run may take besides its search."""
NO_END = "without an end"


class NoEndError(Exception):
    """A command gave no document, or no end in its time."""


@dataclass(frozen=True, slots=True)
class LiveRow:
    """What came of one fault.

    Attributes:
        verdict: What `dx` said at the symptom, and of whom.
        seconds: From the symptom until the search had ended, its stop of the job included.
        say: The search in its own words, with repetitions and times.
        taken: Nodes that were evicted.
        lost: Steps between the one at which it stopped and the one it went on from.
        equal: Steps after the restart whose loss is that of an undisturbed run, of all of them.
        ended: How the run ended.
        load: Of this machine, at the end.
    """

    fault: str
    p: float
    verdict: str
    seconds: float
    say: str
    taken: tuple[str, ...]
    lost: int
    equal: tuple[int, int]
    ended: str
    load: float

    @property
    def right(self) -> bool:
        """A broken machine is evicted and nobody else; for code and data nobody is."""
        expected = (BAD,) if self.fault in OF_A_MACHINE else ()
        return self.ended != NO_END and self.taken == expected

    def lines(self) -> Iterator[str]:
        """For people."""
        word = "right" if self.right else "WRONG"
        equal, steps = self.equal
        yield (
            f"{self.fault} p={self.p:g}: {word}, took {','.join(self.taken) or 'nobody'} after"
            f" {self.seconds:.0f} s, {self.lost} steps lost, {equal} of {steps} losses compared"
            f" since the restart are equal bit by bit, run {self.ended}, load {self.load:.0f}"
        )
        yield f"  dx: {self.verdict}"
        yield f"  {self.say}"


@contextmanager
def lab_of_eight(*, whole_replicas: bool) -> Iterator[Lab]:
    """A lab that trains, each node a replica or four of them one; taken down whatever happens."""
    words = ("--data-parallel",) if whole_replicas else ()
    with signals_as_exceptions(), tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder) / "lab")
        try:
            lab.brctl("lab", "up", "--nodes", str(NODES), "--standbys", "1", *words)
            lab.may_lose(NODES)
            lab.on_site("job", "start", JOB)
            yield lab
        finally:
            with signals_ignored():
                lab.brctl("lab", "down")


def strike(fault: str, p: float, budget: str, *, whole_replicas: bool = True) -> LiveRow:
    """Break one machine, or the job's code or data, and let the search of the product run."""
    with lab_of_eight(whole_replicas=whole_replicas) as lab:
        lab.wait_for(WARM_STEPS if fault != "loss-jump" else JUMP_FROM_STEP)
        words = ["--probability", f"{p:g}", "--seed", "7"] if fault in OF_A_MACHINE else []
        struck_at = max(lab.losses())
        lab.brctl("lab", "break", fault, BAD, *words)
        _wait(lab, struck_at + STRUCK_STEPS)
        try:
            return _search(lab, fault, p, budget)
        except NoEndError as exc:
            return LiveRow(
                fault, p, "not known", BESIDE_SEARCH_S, str(exc), (), 0, (0, 0), NO_END,
                os.getloadavg()[0],
            )  # fmt: skip


def _search(lab: Lab, fault: str, p: float, budget: str) -> LiveRow:
    verdict = _symptom(lab)
    began = time.monotonic()
    inputs = [
        f"job={JOB}", f"one_in={max(1, round(1 / p))}", f"budget={budget}", "within=2m",
        "prove_within=5m",
    ]  # fmt: skip
    settings = [word for value in inputs for word in ("--set", value)]
    behind = [f"--verdict={verdict['verdicts'][0]['id']}"] if verdict.get("verdicts") else []
    limit_s = parse_duration_s(budget) + BESIDE_SEARCH_S
    run = _run_of(_any(lab, "play", "run", "locate-corruption", *behind, *settings))
    stopped_at = max(lab.losses())
    if run["state"] == "waiting":
        run = _run_of(_any(lab, "play", "approve", run["id"], limit_s=limit_s))
    steps = {step["id"]: step for step in run["steps"]}
    located = steps.get("locate") or {}
    chosen = (steps.get("choose") or {}).get("out") or {}
    went_on = chosen.get("step", stopped_at)
    taken = tuple((located.get("out") or {}).get("suspects", ()))
    if run["state"] == "ok":
        _wait(lab, stopped_at + AFTER_STEPS)
    return LiveRow(
        fault, p, _said(verdict), _until_located(run, time.monotonic() - began),
        located.get("says") or "no search", taken,
        max(0, stopped_at - went_on), _equal(lab, went_on), str(run["state"]),
        os.getloadavg()[0],
    )  # fmt: skip


def _symptom(lab: Lab) -> Any:
    """What `dx` says once it speaks of numbers, or in the end."""
    until = time.monotonic() + SYMPTOM_S
    while True:
        found = _any(lab, "dx")
        classes = [verdict.get("class") for verdict in found.get("verdicts") or ()]
        if set(classes) & set(NUMERIC) or time.monotonic() > until:
            return found


def _any(lab: Lab, *words: str, limit_s: float = WAIT_S) -> Any:
    """The document of a command that may end in any way: a verdict, a gate, a failure.

    Raises:
        NoEndError: It gives none, or not in time.
    """
    environment = {**os.environ, "BRCTL_LAB_DIR": str(lab.folder)}
    argv = [sys.executable, "-m", "brctl", "-o", "json", "--context", "lab", *words]
    try:
        done = subprocess.run(
            argv, env=environment, capture_output=True, text=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoEndError(f"{' '.join(words)}: no end within {limit_s:g} s") from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        why = done.stderr.strip()[-2000:]
        raise NoEndError(f"{' '.join(words)}: exit {done.returncode}, {why}") from None


def _run_of(document: Mapping[str, Any]) -> Any:
    if "run" not in document:
        raise NoEndError(f"no run: {json.dumps(document)[:2000]}")
    return document["run"]


def _wait(lab: Lab, step: int) -> None:
    until = time.monotonic() + STRUCK_S
    while max(lab.losses(), default=0) < step and time.monotonic() < until:
        time.sleep(0.2)


def _said(document: Mapping[str, Any]) -> str:
    verdicts = document.get("verdicts") or [{}]
    first = verdicts[0]
    suspects = first.get("suspects", {}).get("folded") or "nobody"
    move = first.get("action", {}).get("playbook") or "no playbook"
    return f"{first.get('class')} {first.get('confidence')}, {suspects}; {move}"


def _until_located(run: Mapping[str, Any], otherwise: float) -> float:
    """Seconds of the steps up to the search; the waiting for a yes is no part of it."""
    total = 0.0
    for step in run["steps"]:
        total += step.get("seconds") or 0.0
        if step["id"] == "locate":
            return total
    return otherwise


def _equal(lab: Lab, went_on: int) -> tuple[int, int]:
    """The newest loss of each step since the restart, beside that of a run without a fault."""
    path = lab.folder / "job" / "progress" / "steps.ndjson"
    newest: dict[int, str] = {}
    for line in path.read_text().splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        newest[told["step"]] = repr(told["loss"])
    later = {step: loss for step, loss in newest.items() if step > went_on}
    if not later:
        return (0, 0)
    expected = undisturbed(max(later))
    return (sum(expected.get(step) == {loss} for step, loss in later.items()), len(later))
