"""`fix` over several failures in a row: what was tried is known from the runs on disk."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest

from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.runs.propose import alerts_on, incident_history, propose, tried_for
from brctl.engine.runs.run_files import (
    PLAYBOOK,
    RunInputs,
    RunRequest,
    save_inputs,
    save_request,
)
from brctl.journal.code_ledger import CodeLedger, ledger_dir
from brctl.journal.store import Journal, new_run
from brctl.library.durable_files import write_atomic
from brctl.library.shipped import shipped_dir
from brctl.model.evidence import Weight
from brctl.model.evidence_kinds import SEARCHED_BEFORE
from brctl.model.fault import FaultClass
from brctl.model.fault_catalogue import WRONG_RESULTS
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.model.verdict import Suspect, Verdict
from brctl.playbook.plan import verdict_scope
from brctl.playbook.recommend import recommend
from tests.fakes.run_context import NOON, example_verdict

F, E = FaultClass, EventType
MINUTE = timedelta(minutes=1)


def failure(fault: FaultClass, *nodes: str, at: datetime = NOON) -> Verdict:
    suspects = tuple(Suspect(node) for node in nodes)
    name = f"V-{fault}-{at:%H%M%S}"
    return replace(example_verdict(at), id=name, fault=fault, suspects=suspects)


def ran(
    state: Path,
    playbook: str,
    about: Verdict,
    at: datetime,
    result: str = "ok",
    out: Mapping[str, Json] = MappingProxyType({}),
    **steps: str,
) -> None:
    """A run about a verdict, as it lies on disk afterwards; what its steps gave is `out`."""
    run_dir = new_run(state)
    write_atomic(run_dir / PLAYBOOK, (shipped_dir("playbooks") / f"{playbook}.yaml").read_text())
    save_inputs(run_dir, RunInputs({}, verdict_scope(about), about.id, {"name": about.job}))
    save_request(run_dir, RunRequest(by="oncall"))
    journal = Journal(run_dir)
    journal.append(E.RUN_STARTED, at, {"by": "oncall"})
    for step, became in steps.items():
        if became != "pending":
            journal.append(E.STEP_INTENT, at, {"step": step, "do": {}})
            ended: dict[str, Json] = {"step": step, "ok": became == "done", "final": True}
            journal.append(E.STEP_RESULT, at, {**ended, "then": "stop", "out": dict(out)})
    journal.append(E.END, at, {"result": result})
    journal.close()


def change_code(state: Path) -> None:
    ledger = CodeLedger(ledger_dir(state, "here", "demo"))
    change = ledger.record("r2", "d2", urgent=True, why="faster", by="ann", at=NOON)
    ledger.apply(change.id, "R-0000", NOON)


def climb(state: Path, failures: list[Verdict]) -> list[str]:
    """Fail, fix, fail, fix: what is proposed each time; every run ends well and does not help."""
    proposed = []
    for number, about in enumerate(failures):
        at = NOON + number * 5 * MINUTE
        playbook = propose(state, "here", replace(about, decided_at=at), at).playbook
        proposed.append(playbook)
        if playbook:
            ran(state, playbook, about, at)
    return proposed


@pytest.mark.parametrize(
    ("changed", "failures", "proposed"),
    [
        # A machine is evicted; the job crashes again without a culprit, time after time.
        (True, [failure(F.GPU_LOST, "n3"), *[failure(F.UNKNOWN)] * 5],
         ["swap-and-resume", "stop-time-checks", "restart-in-place", "code-rollback", "replay",
          ""]),
        # Another machine breaks in between: that is evicted, and the ladder is not climbed again.
        (False, [failure(F.UNKNOWN), failure(F.GPU_LOST, "n3"), failure(F.NUMERIC_NAN, "n4")],
         ["stop-time-checks", "swap-and-resume", "locate-corruption"]),
        # The same machine twice: evicting it did not help.
        (False, [failure(F.GPU_LOST, "n3")] * 2, ["swap-and-resume", "stop-time-checks"]),
        # An exception of new code, then one of old code, then crashes.
        (True, [failure(F.USER_CODE)] * 5,
         ["code-rollback", "stop-time-checks", "restart-in-place", "replay", ""]),
        (False, [failure(F.USER_CODE)] * 2, ["restart-in-place", ""]),
        # A hang: a restart, then the group it came back on, then the ladder.
        (False, [replace(failure(F.HANG_MISMATCH, "n1", "n2"), probability=0.7)] * 4,
         ["restart-in-place", "group-evict", "stop-time-checks", "replay"]),
        # A hang that moves from node to node is no machine's: nobody is evicted for it.
        (False, [failure(F.HANG_MISMATCH, "n1"), failure(F.HANG_MISMATCH, "n2")],
         ["restart-in-place", "stop-time-checks"]),
    ],
)  # fmt: skip
def test_failure_after_failure_the_tree_is_climbed(
    changed: bool, failures: list[Verdict], proposed: list[str], tmp_path: Path
) -> None:
    if changed:
        change_code(tmp_path)
    assert climb(tmp_path, failures) == proposed


def test_a_restart_that_brought_no_step_was_a_try(tmp_path: Path) -> None:
    """An exception at the first step ends `prove`, not the run's success: it is no other case."""
    about = failure(F.USER_CODE)
    ran(tmp_path, "restart-in-place", about, NOON, "needs_human", restart="done", prove="failed")
    assert tried_for(tmp_path, about, NOON) == ("restart-in-place",)


def test_what_never_restarted_the_job_was_no_try(tmp_path: Path) -> None:
    """Refused, or given up while the job was being stopped."""
    about = failure(F.USER_CODE)
    ran(tmp_path, "restart-in-place", about, NOON, "needs_human", stop="failed", restart="pending")
    ran(tmp_path, "restart-in-place", about, NOON, "refused")
    assert tried_for(tmp_path, about, NOON) == ()


def test_an_incident_ends_and_other_jobs_have_their_own(tmp_path: Path) -> None:
    about = failure(F.UNKNOWN)
    ran(tmp_path, "stop-time-checks", about, NOON)
    assert tried_for(tmp_path, about, NOON + timedelta(hours=2)) == ()
    assert tried_for(tmp_path, replace(about, job="other"), NOON) == ()


def test_two_network_alerts_are_two_moments_within_five_minutes(tmp_path: Path) -> None:
    """Looking twice at once is one alert; another class of network fault counts as well."""
    seconds = (0, 5, 40, 200, 400)
    kinds = (F.NETWORK_IB, F.NETWORK_IB, F.NETWORK_LINK, F.NETWORK_IB, F.NETWORK_IB)
    counts = []
    for second, kind in zip(seconds, kinds, strict=True):
        alert = failure(kind, "n3", at=NOON + timedelta(seconds=second))
        save_new(tmp_path, alert)
        counts.append(alerts_on(tmp_path, alert))
    assert counts == [1, 1, 2, 3, 2]
    first = propose(tmp_path / "new", "here", failure(F.NETWORK_IB, "n3"), NOON)
    assert (first.playbook, first.say[:17]) == ("", "one network alert")


def test_a_first_network_alert_waits_and_a_second_evicts(tmp_path: Path) -> None:
    for second, playbook in ((0, ""), (90, "swap-and-resume")):
        alert = failure(F.NETWORK_IB, "n3", at=NOON + timedelta(seconds=second))
        save_new(tmp_path, alert)
        assert propose(tmp_path, "here", alert, alert.decided_at).playbook == playbook


def told_before(state: Path, about: Verdict) -> list[str]:
    """What the verdict says of earlier searches, as it is shown."""
    history = incident_history(state, "here", about, about.decided_at)
    chain = recommend(about, history).evidence
    earlier = [item for item in chain if item.kind == SEARCHED_BEFORE]
    assert {item.weight for item in earlier} <= {Weight.CONTEXT}
    return [item.text for item in earlier]


NAMED: dict[str, Json] = {"suspects": ["n3"], "reason": WRONG_RESULTS}


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (NAMED, f"n3: {WRONG_RESULTS}"),
        ({"undecided": ["n1", "n3"]}, "n[1,3] could not be told apart"),
        ({"everywhere": True}, "no machine: the same steps went wrong on others as well"),
        ({"unmeasured": ["n4"]}, "not reproduced, and nothing is known of n4"),
    ],
)
def test_a_later_verdict_knows_what_a_search_found_and_how_long_ago(
    tmp_path: Path, out: dict[str, Json], told: str
) -> None:
    """For a day, and as context: what stands in the chain of a verdict convicts nobody by it."""
    first = failure(F.NUMERIC_NAN)
    ran(tmp_path, "locate-corruption", first, NOON, "needs-human", out, locate="done")
    later = failure(F.NUMERIC_NAN, at=NOON + 180 * MINUTE)
    (text,) = told_before(tmp_path, later)
    assert text.startswith("3h00 ago R-")
    assert text.endswith(f" found: {told}")
    assert told_before(tmp_path, failure(F.GPU_LOST, "n3", at=later.decided_at)) == []
    assert told_before(tmp_path, replace(later, job="another")) == []
    assert told_before(tmp_path, failure(F.NUMERIC_NAN, at=NOON + 25 * 60 * MINUTE)) == []


def test_a_node_that_came_back_since_is_no_longer_named_by_an_old_search(tmp_path: Path) -> None:
    """It was repaired, or somebody vouched for it; what was found stays on record."""
    about = failure(F.SILENT_CORRUPTION)
    ran(tmp_path, "locate-corruption", about, NOON, out=NAMED, locate="done")
    later = replace(about, decided_at=NOON + 60 * MINUTE)
    (before,) = incident_history(tmp_path, "here", later, later.decided_at).searched
    ran(tmp_path, "uncordon", replace(about, job=""), NOON + MINUTE, out={"uncordoned": ["n3"]},
        release="done")  # fmt: skip
    (after,) = incident_history(tmp_path, "here", later, later.decided_at).searched
    assert (before.nodes, after.nodes) == (("n3",), ())
    assert after.found == before.found


def test_what_was_given_back_later_is_later_whatever_its_runs_number(tmp_path: Path) -> None:
    """As text, R-10000 comes before R-9999; and the run begun first may end last."""
    about = failure(F.SILENT_CORRUPTION)
    ran(tmp_path, "uncordon", replace(about, job=""), NOON + MINUTE, out={"uncordoned": ["n3"]},
        release="done")  # fmt: skip
    ran(tmp_path, "locate-corruption", about, NOON, out=NAMED, locate="done")
    later = replace(about, decided_at=NOON + 60 * MINUTE)
    (search,) = incident_history(tmp_path, "here", later, later.decided_at).searched
    assert search.nodes == ()
