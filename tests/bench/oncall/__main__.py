"""Every fault of `lab break`, found and mended as a person on call would, from the keyboard.

    python -m tests.bench.oncall [--only FAULT ...] [--nodes 4] [--standbys 2] [--keep FOLDER]

One lab with a torch job; before each fault the job is started anew. The person types `brctl dx`,
again while it is unsure, at most until three looks say the same of a job that goes on, and the next
level when these told nothing; then `brctl fix` and the words it asks for, and all of it once more
if that failed. To `[y/N]` they say y, to `[y/a/N]` a. `brctl` and `brctl why` are looked at too,
and not counted: they are not needed. A key is a key: letters, Enter, and the arrow up as often as
it takes to a command typed before.

Columns: keys and commands that were needed, seconds from the fault to the verdict and to the first
step after the fix, the machine's load when it began, what was said. Right is the fault's class and
its node, and steps that go on after the fix or, where the verdict is not LOW and leaves it to a
person, whatever the job does; for a fault that no verdict may act on, that it went on untouched. A
lead is right at LOW, with nothing to run. Goals: all right, at most 20 keys, no verdict after 60 s.
Exit 1 where one is missed.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import VerdictState, load_all
from brctl.lab.cluster import Lab, up
from brctl.lab.faults import FAULTS
from brctl.lab.interrupts import signals_as_exceptions
from brctl.lab.spec import LabSpec, parse_isolation
from brctl.model.exit_codes import ExitCode
from brctl.model.fault import FaultClass
from brctl.model.verdict import Confidence, Verdict
from tests.bench.oncall.person import Person, Said, environment_of
from tests.bench.recovery import Bench

KEYS_GOAL, VERDICT_GOAL_S = 20, 60.0
LOOK_LIMIT_S, VERDICT_LIMIT_S, FIX_LIMIT_S, STEPS_LIMIT_S = 120.0, 180.0, 240.0, 90.0
ROUNDS = 2
"""A fix that did not help is followed by another look and another fix."""

DEEPER, PATIENCE_LOOKS = "brctl dx --level 2", 3
GOES_ON = "makes progress"
"""In the first line of `dx`: whoever sees a job that stands still looks on."""

PAUSE_S = 2.0
"""Between two looks: a person reads the answer."""


@dataclass
class Trial:
    """One fault.

    Attributes:
        said: Class, confidence and nodes of the verdict the person acted on, or how dx ended.
        resumed_s: Until the first step after the fix; None when none came.
        failed: How the last fix ended; "" for well, or none.
        lead: Right, and LOW: a lead that a person has to follow.
    """

    fault: str
    said: str = "-"
    commands: int = 0
    keys: int = 0
    verdict_s: float | None = None
    resumed_s: float | None = None
    right: bool = False
    lead: bool = False
    failed: str = ""
    why: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def row(self) -> str:
        """One line of the table."""
        verdict, resumed = (
            "-" if s is None else f"{s:.0f}" for s in (self.verdict_s, self.resumed_s)
        )
        word = "lead" if self.lead else "right" if self.right else "WRONG"
        return (
            f"{self.fault:18} {self.commands:8} {self.keys:5} {verdict:>9} {resumed:>9}"
            f"  {self.load:4.0f}  {word:5}  {self.said}{'; ' + self.why if self.why else ''}"
        )

    @property
    def expects_nothing(self) -> bool:
        """No verdict may act on it."""
        return FAULTS[self.fault].expected == FaultClass.UNKNOWN

    @property
    def missed(self) -> list[str]:
        late = self.verdict_s is None or self.verdict_s > VERDICT_GOAL_S
        goals = (
            (not self.right, "wrong"),
            (self.lead, "only a lead"),
            (self.keys > KEYS_GOAL, f"{self.keys} keys"),
            (late and not self.expects_nothing, "late"),
        )
        return [f"{self.fault}: {what}" for was, what in goals if was]


HEAD = (
    f"{'fault':18} {'commands':>8} {'keys':>5} {'verdict s':>9} {'resumed s':>9}  load  right  said"
)


async def try_fault(lab: Lab, fault: str, keep: Path | None) -> Trial:
    """Break, look, fix; on a job that was started anew."""
    async with Bench(lab, fault).trained() as controller:
        steps = Path(controller.job(None).progress_dir) / "steps.ndjson"
        node = sorted(controller.job(None).nodes)[-1]
        transcript = keep / f"{fault}.txt" if keep else None
        person = Person(environment_of(str(lab.paths.config)), transcript)
        return await asyncio.to_thread(_on_call, lab, controller, fault, node, person, steps)


async def _tried(lab: Lab, fault: str, keep: Path | None) -> Trial:
    """A trial whose lab fails is wrong, and the others go on."""
    try:
        return await try_fault(lab, fault, keep)
    except SystemExit as exc:
        if not isinstance(exc.code, str):
            raise
        return Trial(fault, why=exc.code)


def _on_call(
    lab: Lab, controller: Controller, fault: str, node: str, person: Person, steps: Path
) -> Trial:
    began = time.time()
    lab.break_node(fault, node)
    trial = Trial(fault)
    verdict, explained = None, None
    for _ in range(ROUNDS):
        verdict = _find(controller, trial, person, began)
        person.looks("brctl", LOOK_LIMIT_S)
        explained = person.looks("brctl why", LOOK_LIMIT_S) if verdict else None
        if verdict is None or not verdict.playbook:
            break
        ended = person.types("brctl fix", FIX_LIMIT_S)
        trial.failed = "" if ended.status == 0 else f"fix ended {ended.status}: {_last(ended)}"
        if ended.status == 0:
            break
        trial.why += f"{verdict.playbook} did not help; "
    _resumed(trial, steps, began)
    _judge(trial, verdict, node)
    if explained is not None and explained.status != 0:
        trial.why += f"why ended {explained.status}"
    trial.commands, trial.keys = len(person.typed), person.keys
    return trial


def _find(controller: Controller, trial: Trial, person: Person, began: float) -> Verdict | None:
    """Type `dx` until it is likely of something, or as unsure of the same thing as before."""
    command, leads = "brctl dx", list[str]()
    while time.time() - began < VERDICT_LIMIT_S:
        said = person.types(command, LOOK_LIMIT_S)
        found = _open_verdict(controller)
        trial.said = _words(found) if found else f"dx ended {said.status}"
        leads.append(trial.said)
        agree = leads[-PATIENCE_LOOKS:] == [trial.said] * PATIENCE_LOOKS
        settled = agree and GOES_ON in said.text
        sure = found is not None and found.confidence is not Confidence.LOW
        if sure or (settled and (found is not None or trial.expects_nothing)):
            trial.verdict_s = trial.verdict_s or time.time() - began
            return found
        command = DEEPER if DEEPER in said.text or settled else "brctl dx"
        time.sleep(PAUSE_S)
    return None


def _open_verdict(controller: Controller) -> Verdict | None:
    stored = load_all(controller.state_dir)
    return next((s.verdict for s in stored if s.state is VerdictState.OPEN), None)


def _words(verdict: Verdict) -> str:
    nodes = ",".join(verdict.nodes) or "no node"
    return f"{verdict.fault.value} {verdict.confidence.value} {nodes} -> {verdict.playbook or '-'}"


def _resumed(trial: Trial, steps: Path, began: float) -> None:
    """When the job took its first step after all that was done."""
    acted = time.time()
    deadline = time.monotonic() + STEPS_LIMIT_S
    while time.monotonic() < deadline:
        after = [at for at in _times(steps) if at > acted - 1.0]
        if after:
            # The fix may have waited for steps itself: the first one after the restart counts.
            trial.resumed_s = _first_after_gap(_times(steps), began, after[0]) - began
            return
        time.sleep(0.2)


def _first_after_gap(times: Sequence[float], began: float, latest: float) -> float:
    """The step that ended the longest pause since the fault; the first of all when it had none."""
    since = [at for at in times if at > began - 1.0 and at <= latest]
    gaps = [(later - earlier, later) for earlier, later in pairwise(since)]
    return max(gaps, default=(0.0, latest))[1]


def _judge(trial: Trial, verdict: Verdict | None, node: str) -> None:
    expected = FAULTS[trial.fault].expected
    goes_on = trial.resumed_s is not None
    if trial.expects_nothing:
        touched = verdict is not None and bool(verdict.playbook)
        trial.right = goes_on and not touched
        trial.why += "rightly not touched" if trial.right else "touched"
        return
    low = verdict is not None and verdict.confidence is Confidence.LOW
    named = verdict is not None and verdict.fault == expected and verdict.nodes in ((node,), ())
    to_a_person = verdict is not None and not verdict.playbook
    trial.right = named and (goes_on or (to_a_person and not low)) and not trial.failed
    trial.lead = trial.right and low
    left = "left to a person" if trial.right else "no step came after it"
    trial.why += trial.failed or ("" if goes_on else left)


def _last(said: Said) -> str:
    """What went wrong in a run, else the last line."""
    lines = [line.strip() for line in said.text.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith("FAIL")]
    return (failed or lines or ["nothing said"])[-1][:160]


def _times(steps: Path) -> list[float]:
    """When rank 0 finished each step; the last line may be half written."""
    lines = steps.read_text().split("\n")[:-1] if steps.exists() else []
    return sorted(float(json.loads(line)["at"]) for line in lines)


async def _run(options: argparse.Namespace) -> int:
    missed, trials = [], []
    with tempfile.TemporaryDirectory(prefix="brctl-oncall-") as folder, signals_as_exceptions():
        spec = LabSpec(
            options.nodes, options.standbys, isolation=parse_isolation(options.isolation)
        )
        lab = up(spec, Path(folder) / "lab")
        try:
            lab.adopt_children()
            print(f"{options.nodes} nodes, {lab.record.isolation.value}")
            print(HEAD, flush=True)
            for fault in options.only:
                trials.append(await _tried(lab, fault, options.keep))
                missed += trials[-1].missed
                print(trials[-1].row(), flush=True)
        finally:
            lab.down()
    right, leads = sum(t.right for t in trials), sum(t.lead for t in trials)
    goals = f"at most {KEYS_GOAL} keys, no verdict after {VERDICT_GOAL_S:.0f} s"
    only = f" ({leads} only as a lead)" if leads else ""
    print(f"{right} of {len(trials)} right or rightly not touched{only}; goals: all, {goals}")
    print("".join(f"  missed: {what}\n" for what in missed), end="")
    return ExitCode.WARNING if missed else ExitCode.OK


def main(arguments: Sequence[str]) -> int:
    """Print a line a fault."""
    parser = argparse.ArgumentParser(description="Every fault of the lab, from the keyboard.")
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--standbys", type=int, default=2)
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("--keep", type=Path, help="a folder for what was typed and said")
    return asyncio.run(_run(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
