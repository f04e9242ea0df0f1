"""Slower steps of a job whose groups are split over the network are told from a slow link."""

from brctl.engine.job.conclude import JobFindings, conclude
from brctl.engine.job.split_groups import SPLIT_GROUPS
from brctl.evidence.job.assess import assess_job
from brctl.model.inventory import Inventory, Node
from brctl.model.jobs.job_status import JobStatus
from tests.evidence.job.test_history import JOB, past, status
from tests.fakes.nodes import NOW, clear, sweep_of

SLOWER = status(past(0.4, 0.41, 0.4, recent=0.9), others=0.02)
AS_EVER = status(past(0.4, 0.41, 0.4, recent=0.4), others=0.02)


def said_of_groups(spines: str, seen: JobStatus = SLOWER) -> list[str]:
    """What the verdicts say of split groups when n1 to n8 have these spines."""
    labels = [{} if spine == "-" else {"spine": spine} for spine in spines]
    nodes = [Node(name, "x", labels=own) for name, own in zip(JOB.nodes, labels, strict=True)]
    findings = JobFindings(seen, (tuple(assess_job(seen, ())), ()))
    fleet = Inventory({node.name: node for node in nodes})
    verdicts = conclude(sweep_of(*map(clear, JOB.nodes)), findings, fleet, NOW)
    return [e.text for v in verdicts for e in v.evidence if e.kind == SPLIT_GROUPS]


def test_split_groups_stand_beside_slower_steps_and_blame_no_node() -> None:
    (text,) = said_of_groups("abababab")
    assert text.startswith("4 of 4 tp groups are split over up to 2 domains (spine)")
    assert "steps are 125% longer, so look for a slow link as well" in text


def test_whole_groups_unknown_places_and_usual_steps_say_nothing() -> None:
    """What nobody knows is no explanation, and a job at its own pace needs none."""
    assert said_of_groups("aaaabbbb") == []
    assert said_of_groups("ababab--") == []
    assert said_of_groups("abababab", AS_EVER) == []
