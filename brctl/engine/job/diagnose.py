"""From "it stands still" to verdicts: look at every node of the job at once, then decide."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from brctl.engine.controller.name_cache import write_names
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.job.flight import analyse_folder as analyse_dumps
from brctl.engine.job.flight_collect import collect_dumps, dump_prefix
from brctl.engine.job.stack_store import new_folder
from brctl.engine.job.stacks import analyse_folder, ask_ranks, capture_rounds, load_rounds
from brctl.engine.runs.propose import with_next_move
from brctl.engine.sweeps.run_checks import Progress, Question, sweep_nodes
from brctl.evidence.flight.node_evidence import assess_flight
from brctl.evidence.job.assess import assess_job, job_gaps
from brctl.evidence.job.ends import raised
from brctl.evidence.job.history import usual_pace
from brctl.evidence.job.long_phases import excused
from brctl.evidence.job.outlived import of_this_job, outlived, said_in_passing
from brctl.evidence.job.status import goes_on, read_job, with_stacks
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.last_words import RankWords, assess_log_lines
from brctl.evidence.logs.signature import Signature
from brctl.evidence.stacks.node_evidence import assess_stacks
from brctl.model.command import Outcome
from brctl.model.errors import ConfigError
from brctl.model.evidence import Evidence, Gap, Subject
from brctl.model.inventory import Inventory
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.verdict.decide import Scene, decide

ASK_AGAIN = frozenset(Outcome) - {
    Outcome.ANSWERED,
    Outcome.AUTHENTICATION_FAILED,
    Outcome.HOST_KEY_MISMATCH,
    Outcome.NOT_AVAILABLE,
}
"""One lost packet must not convict a node: whoever was silent is asked twice."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a diagnosis saw and what it concludes, likeliest verdict first."""

    sweep: Sweep
    status: JobStatus | None
    verdicts: tuple[Verdict, ...]


def keep(controller: Controller, found: Diagnosis) -> None:
    """Store verdicts, so that `why` can explain them and `fix` can act on them."""
    for verdict in found.verdicts:
        save_new(controller.state_dir, verdict)
    write_names(controller)


async def diagnose_once(
    controller: Controller,
    job: Job | None,
    names: Sequence[str],
    on_node: Progress | None = None,
    *,
    level: int = 1,
) -> Diagnosis:
    """Look at the nodes (and the job on them) once and decide; stores nothing but the sweep."""
    question = Question(level=level, job=job)
    sweep = await sweep_nodes(controller, names, question, on_node)
    sweep = await _ask_again(controller, sweep, question)
    status = read_job(job, [node.report for node in sweep.nodes]) if job else None
    evidence, gaps = collect(sweep)
    if status is not None:
        status, stacks, stack_gaps = await _examine_hang(controller, status)
        log_evidence, unread = assess_job_logs(controller, status, sweep, gaps)
        if said_in_passing(log_evidence, status):
            later = read_job(status.job, await ask_ranks(controller, status.job))
            log_evidence = outlived(log_evidence, status, later)
        evidence = of_this_job(evidence, status, [node.report for node in sweep.nodes])
        evidence, gaps = (*evidence, *log_evidence, *stacks), (*gaps, *unread, *stack_gaps)
    decided = decide(evidence, gaps, _scene(controller, status))
    return Diagnosis(sweep, status, tuple(_with_move(controller, verdict) for verdict in decided))


def _with_move(controller: Controller, verdict: Verdict) -> Verdict:
    return with_next_move(
        controller.state_dir, controller.settings.context, verdict, controller.now()
    )


def hangs(status: JobStatus) -> bool:
    """It stands still and no rank ended: nothing but their stacks can tell them apart."""
    ended = any(view.alive is False for view in status.ranks)
    return bool(status.stalled) and not ended and any(view.alive for view in status.ranks)


def dumps_compare(status: JobStatus) -> bool:
    """Dumps are of one moment while nobody leaves.

    The end of a rank that raised completes, for some of its peers, what others wait in for ever.
    """
    return dump_prefix(status.job) != "" and not raised(status)


async def _examine_hang(
    controller: Controller, status: JobStatus
) -> tuple[JobStatus, tuple[Evidence, ...], tuple[Gap, ...]]:
    """A job that stands still, looked at twice: with its ranks' stacks, and what they say."""
    if not hangs(status):
        return status, (), ()
    folder = new_folder(controller.state_dir, status.job.name, controller.now())
    await capture_rounds(controller, status.job, folder, times=1, every_s=0.0)
    later = read_job(status.job, await ask_ranks(controller, status.job))
    if goes_on(status, later):
        return later, (), ()
    status = with_stacks(status, load_rounds(folder)[-1])
    seen, unseen = _judge_stacks(status, folder)
    dumped, undumped = await _examine_flight(controller, status, folder)
    return status, (*seen, *dumped), (*unseen, *undumped)


def _judge_stacks(status: JobStatus, folder: Path) -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
    """What the stacks say of the nodes; what could not be read is a gap."""
    analysis = analyse_folder(folder, status.job)
    if len(analysis.silent) * 2 > status.job.world_size:
        why = f"{len(analysis.silent)} of {status.job.world_size} ranks gave no stack"
        return (), (Gap(Subject(""), "job.stacks", why),)
    return assess_stacks(analysis, status.job, excused(status)), ()


async def _examine_flight(
    controller: Controller, status: JobStatus, folder: Path
) -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
    """What the ranks' flight recorders say, if the job is set up to dump them and hangs."""
    job = status.job
    if not dumps_compare(status):
        return (), ()
    nodes, dumps = controller.inventory.pick(job.nodes), folder / "flight-recorder"
    notes = await collect_dumps(
        controller.transport, nodes, job, dumps, fanout=controller.settings.ssh.fanout
    )
    if len(notes) * 2 > job.world_size:
        why = f"{len(notes)} of {job.world_size} ranks have no dump: {notes[0]}"
        return (), (Gap(Subject(""), "flight-recorder", why),)
    return assess_flight(analyse_dumps(dumps, job), excused(status)), ()


async def _ask_again(controller: Controller, sweep: Sweep, question: Question) -> Sweep:
    silent = [n.node for n in sweep.nodes if n.report.outcome in ASK_AGAIN]
    if not silent:
        return sweep
    again = await sweep_nodes(controller, silent, question)
    newer = {node.node: node for node in again.nodes}
    return replace(
        sweep,
        nodes=tuple(newer.get(node.node, node) for node in sweep.nodes),
        seconds=sweep.seconds + again.seconds,
    )


def collect(sweep: Sweep) -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
    """Everything the nodes of a sweep say, and everything they leave unsaid."""
    evidence = [item for node in sweep.nodes for item in node.evidence]
    gaps = [gap for node in sweep.nodes for gap in node.gaps]
    return tuple(evidence), tuple(gaps)


def assess_job_logs(
    controller: Controller, status: JobStatus, sweep: Sweep, gaps: Sequence[Gap]
) -> tuple[tuple[Evidence, ...], tuple[Gap, ...]]:
    """What the job's ranks did and said; a rule file that cannot be read is a gap, no obstacle."""
    signatures, unread = _log_signatures(controller)
    advancing = status.stalled is False and all(view.alive is True for view in status.ranks)
    texts = [_rank_text(view) for view in status.ranks]
    evidence = (
        *assess_job(status, [node.report for node in sweep.nodes]),
        *assess_log_lines(texts, signatures, advancing=advancing),
    )
    return evidence, (*job_gaps(status, gaps), *unread)


def _log_signatures(controller: Controller) -> tuple[Sequence[Signature], tuple[Gap, ...]]:
    try:
        return controller.log_signatures, ()
    except ConfigError as exc:
        return SHIPPED, (Gap(Subject(""), "log rules of the site", str(exc)),)


def _rank_text(view: RankView) -> RankWords:
    return RankWords(view.rank, view.node, view.last_words, view.exit_status, view.alive)


def _scene(controller: Controller, status: JobStatus | None) -> Scene:
    if status is None:
        return Scene(decided_at=controller.now())
    return scene_of(status, controller.inventory, controller.now())


def scene_of(status: JobStatus, inventory: Inventory, now: datetime) -> Scene:
    """What is known of a job besides the evidence."""
    nodes = inventory.pick(node for node in status.job.nodes if node in inventory.nodes)
    return Scene(
        decided_at=now,
        job=status.job.name,
        job_step=status.step,
        stalled=status.stalled,
        ranks={node: status.job.ranks_on(node) for node in status.job.nodes},
        usual_pace=usual_pace(status),
        leaves={node.name: node.labels["leaf"] for node in nodes if "leaf" in node.labels},
    )


async def still_true(controller: Controller, verdict: Verdict) -> bool:
    """Look again at the suspects; whether the same fault still stands on each of them.

    A guard asks this right before nodes are changed: a node may have come back.
    """
    job = controller.jobs.get(verdict.job)
    again = await diagnose_once(controller, job, job.nodes if job else verdict.nodes)
    return any(
        v.fault is verdict.fault and set(verdict.nodes) <= set(v.nodes) for v in again.verdicts
    )
