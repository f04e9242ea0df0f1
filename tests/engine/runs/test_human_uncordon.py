"""A person who puts a node back into service stops what a run still wanted to do to it."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.backends.contract import Backend, StopReport
from brctl.backends.slurm.backend import SlurmBackend
from brctl.backends.static.backend import StaticBackend
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest
from brctl.fanout.local import LocalTransport
from brctl.journal.store import read_journal
from brctl.library.guards import SiteGuards
from brctl.library.playbooks import load_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import GuardSpec, Json, Playbook
from brctl.model.sweeps.sweep import NodeHealth
from tests.engine.runs.test_for_each import ROLLING
from tests.fakes.run_context import NOON, FakeContext, example_inventory, fake_context
from tests.fakes.run_here import carry
from tests.fakes.slurm_cluster import missing, slurm_cluster

Person = tuple[Backend, Callable[[str], None]]
"""A scheduler, and what somebody does to one of its nodes behind the run's back."""

SWAP = load_playbook(shipped_dir("playbooks") / "swap-and-resume.yaml")


def begin(context: FakeContext, playbook: Playbook = SWAP, **values: Json) -> Path:
    """A run that waits at its gate."""
    arguments: dict[str, Json] = values or {"suspects": "n3", "job": "demo"}
    prepared = asyncio.run(prepare(context, playbook, None, arguments))
    run_dir = create_run(context, prepared, RunRequest(by="oncall"))
    assert carry(context, run_dir) is ExitCode.WAITING
    return run_dir


def go_on(context: FakeContext, run_dir: Path, typed: str = "swap 1") -> ExitCode:
    answer(context, run_dir, "oncall", yes=True, typed=typed)
    return carry(context, run_dir)


@contextmanager
def static_site(folder: Path) -> Iterator[Person]:
    """A state file, and a person who types `brctl uncordon` beside the run."""
    transport, inventory = LocalTransport(), example_inventory()

    def put_back(node: str) -> None:
        person = StaticBackend(folder / "static.json", transport, inventory, 8)
        asyncio.run(person.uncordon([node]))

    yield StaticBackend(folder / "static.json", transport, inventory, 8), put_back


@contextmanager
def slurm_site(folder: Path) -> Iterator[Person]:
    """A real Slurm, and an administrator who knows nothing of brctl."""
    absent = missing()
    if absent:
        pytest.skip(f"not installed: {absent}")

    def put_back(node: str) -> None:
        update = ["scontrol", "update", f"NodeName={node}", "State=RESUME"]
        subprocess.run(update, check=True)

    inventory = example_inventory()
    with slurm_cluster(folder, list(inventory.nodes)):
        yield SlurmBackend(folder / "s.json", LocalTransport(), inventory, 8), put_back


@pytest.mark.parametrize("site", [static_site, pytest.param(slurm_site, marks=pytest.mark.slurm)])
def test_a_node_put_back_by_a_person_ends_the_run_before_the_job_is_stopped(
    site: Callable[[Path], AbstractContextManager[Person]], tmp_path: Path
) -> None:
    """The yes comes later than the uncordon, and changes nothing: the job runs on, all is free."""
    context = fake_context(tmp_path)
    with site(tmp_path) as (backend, put_back):
        context = replace(context, backend=backend)
        run_dir = begin(context)
        assert asyncio.run(backend.cordons())["n3"].owner == "brctl:R-0001"
        put_back("n3")
        assert go_on(context, run_dir) is ExitCode.ROLLED_BACK
        assert asyncio.run(backend.cordons()) == {}
        assert asyncio.run(backend.reservations()) == {}
    assert read_run(run_dir).record.steps["stop"].attempts == 0
    end = read_journal(run_dir).events[-1]
    why = "somebody put n3 back into service while R-0001 held it"
    assert why in str(end.fields["why"])


def test_another_person_s_cordon_is_no_uncordon(tmp_path: Path) -> None:
    """Whose name the reason carries does not matter, the node stays out; it is left to them."""
    context = fake_context(tmp_path)
    run_dir = begin(context)
    asyncio.run(context.backend.uncordon(["n3"]))
    asyncio.run(context.backend.cordon(["n3"], "ann", "the board is coming", NOON))
    assert go_on(context, run_dir) is ExitCode.OK
    assert context.world.read()["cordons"]["n3"]["owner"] == "ann"


def test_once_the_job_is_stopped_it_is_brought_back_all_the_same(tmp_path: Path) -> None:
    """Leaving a job stopped helps nobody; the node keeps what the person gave it."""
    context = fake_context(tmp_path)
    stop = context.backend.stop_job

    async def stop_and_lift(job: Job, grace_s: float) -> StopReport:
        report = await stop(job, grace_s)
        await context.backend.uncordon(["n3"])
        return report

    run_dir = begin(context)
    context.backend.stop_job = stop_and_lift  # type: ignore[method-assign]  # a person meanwhile
    assert go_on(context, run_dir) is ExitCode.OK
    data = context.world.read()
    assert (data["nodes"], data["cordons"]) == (["n1", "n2", "s1", "n4"], {})
    notes = [e for e in read_journal(run_dir).events if e.type is EventType.NOTE]
    assert [str(e.fields["text"]).partition(";")[0] for e in notes] == [
        "somebody put n3 back into service while R-0001 held it"
    ]


def test_of_many_nodes_only_that_one_is_left_alone(tmp_path: Path) -> None:
    """Its pending steps are skipped with the reason; the other nodes go their way."""
    context = fake_context(tmp_path)
    context = replace(
        context, guards=SiteGuards((GuardSpec("blast_radius", {"max_nodes": 6}, "g.yaml:1"),))
    )
    with context.world.change() as data:
        data["dead"] = []
    examine = context.sweeps.examine

    async def examine_and_lift(nodes: Sequence[str], level: int) -> Sequence[NodeHealth]:
        if "n2" in nodes:
            await context.backend.uncordon(["n2"])
        return await examine(nodes, level)

    rolling = read_playbook(ROLLING.encode(), "rolling.yaml")
    run_dir = begin(context, rolling, nodes="n[1-3]")
    context.sweeps.examine = examine_and_lift  # type: ignore[method-assign]  # a person meanwhile
    assert go_on(context, run_dir, "y") is ExitCode.OK
    record = read_run(run_dir).record
    assert {n: node_run.result for n, node_run in record.node_runs.items()} == {
        "n1": "ok",
        "n2": "skipped",
        "n3": "ok",
    }
    assert record.steps["release@n2"].attempts == 0
    assert context.world.read()["cordons"] == {}
