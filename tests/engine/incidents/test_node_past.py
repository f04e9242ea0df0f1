"""What is counted against a node: verdicts that stood, runs that did something, Xids of sweeps."""

from dataclasses import replace
from pathlib import Path

from brctl.engine.incidents.node_past import of_runs, of_transitions, of_verdicts
from brctl.engine.incidents.verdict_store import StoredVerdict, VerdictState
from brctl.evidence.lemons import LemonSign, LemonSignal
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.fault import FaultClass, Origin
from brctl.model.jobs.job import example_job
from brctl.model.sweeps.sweep import Health
from brctl.model.sweeps.transition import Transition
from brctl.playbook.run import Run
from brctl.playbook.run_record import RunRecord, StepRecord
from brctl.playbook.steps import StepState
from tests.fakes.nodes import NOW
from tests.fakes.watching import a_verdict

S = LemonSignal
SHIPPED = load_playbooks([shipped_dir("playbooks")])
JOBS = {
    "wide": replace(example_job(), nodes=("n1", "n2")),
    "narrow": replace(example_job(), nodes=("n1",)),
}
XID = Evidence(
    "gpu.xid.79", Subject("n1", "gpu:0"), Weight.CONVICTS, FaultClass.GPU_LOST, Role.ROOT,
    "gpu.xid", "Xid 79: GPU has fallen off the bus",
)  # fmt: skip


def ran(playbook: str, job: str = "", **steps: StepRecord) -> Run:
    """A run of which these steps are known."""
    made = SHIPPED[playbook]
    record = RunRecord(tuple(step.id for step in made.steps))
    record.steps.update(steps)
    return Run(
        name="R-0001", run_dir=Path("R-0001"), playbook=made, record=record, events=(), damage=(),
        alive=False, by="op", verdict_id="", verdict={}, job=job, nodes=("n1",),
    )  # fmt: skip


def test_a_verdict_counts_by_the_width_of_its_job_and_with_its_xids() -> None:
    wide = StoredVerdict(
        replace(a_verdict("V-1", ("n1",), "wide"), evidence=(XID,)), VerdictState.OPEN
    )
    narrow = StoredVerdict(a_verdict("V-2", ("n1",), "narrow"), VerdictState.ACTED_ON)
    assert set(of_verdicts([wide, narrow], JOBS)) == {
        LemonSign("n1", S.MULTI_NODE_FAILS, "V-1"), LemonSign("n1", S.XIDS, "Xid 79"),
        LemonSign("n1", S.SINGLE_NODE_FAILS, "V-2"),
    }  # fmt: skip


def test_what_was_wrong_or_the_code_counts_for_nothing() -> None:
    verdict = a_verdict("V-1", ("n1",), "wide")
    code = replace(verdict, origin=Origin.USER)
    assert not list(of_verdicts([StoredVerdict(verdict, VerdictState.DISMISSED)], JOBS))
    assert not list(of_verdicts([StoredVerdict(code, VerdictState.OPEN)], JOBS))
    assert not list(of_verdicts([StoredVerdict(a_verdict("V-1", (), ""), VerdictState.OPEN)], JOBS))


def test_a_verdict_that_turned_out_to_be_elsewhere_counts_there() -> None:
    elsewhere = StoredVerdict(
        a_verdict("V-1", ("n1",), "wide"), VerdictState.CONFIRMED, nodes=("n2",)
    )
    assert list(of_verdicts([elsewhere], JOBS)) == [LemonSign("n2", S.MULTI_NODE_FAILS, "V-1")]


def test_a_swap_counts_as_out_and_for_the_job_that_left() -> None:
    cordon = StepRecord(StepState.DONE, attempts=1, out={"cordoned": ["n1"]})
    swap = ran("swap-and-resume", "llm", cordon=cordon, swap=StepRecord(StepState.DONE))
    assert set(of_runs([swap])) == {
        LemonSign("n1", S.OUTS, "R-0001"), LemonSign("n1", S.EXCLUDED_JOBS, "llm"),
    }  # fmt: skip
    taken_back = ran("cordon", cordon=replace(cordon, state=StepState.UNDONE))
    assert not list(of_runs([taken_back]))


def test_a_ticket_that_a_run_opened_counts() -> None:
    step = StepRecord(StepState.DONE, out={"ticket": "RMA-7"}, arguments={"node": "n1"})
    assert list(of_runs([ran("return-to-service", rma=step)])) == [
        LemonSign("n1", S.TICKETS, "RMA-7")
    ]


def test_xids_of_sweeps_are_told_apart_by_their_number() -> None:
    news = Transition(NOW, "n1", "gpu.xid", Health.CRITICAL, "new", "Xid 79: lost; Xid 48: DBE")
    assert [sign.what for sign in of_transitions([news])] == ["Xid 79", "Xid 48"]
