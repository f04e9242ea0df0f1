"""From "it stands still" to verdicts: look at every node of the job at once, then decide."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from brctl.engine.controller.name_cache import write_names
from brctl.engine.controller.wiring import Controller
from brctl.engine.incidents.verdict_store import save_new
from brctl.engine.job.conclude import (
    NOTHING,
    Findings,
    JobFindings,
    assess_dumps,
    assess_hang,
    assess_ranks,
    conclude,
    hangs,
    may_be_restarted,
)
from brctl.engine.job.control_group import ask_others
from brctl.engine.job.flight import load_dumps
from brctl.engine.job.flight_collect import collect_dumps, dump_prefix, write_dumps
from brctl.engine.job.loaders import examine_loaders
from brctl.engine.job.looks import beside_last_look
from brctl.engine.job.pace_store import keep_pace
from brctl.engine.job.read_ranks import read_ranks
from brctl.engine.job.stack_store import new_folder
from brctl.engine.job.stacks import (
    ask_network,
    ask_ranks,
    capture_rounds,
    load_rounds,
)
from brctl.engine.job.state_past import past_of
from brctl.engine.live_queries.ras import ask_ras, facts_of, keep_raw
from brctl.engine.live_queries.workers import ask_workers, recorded_in
from brctl.engine.sweeps.run_checks import Progress, Question, sweep_nodes
from brctl.evidence.job.ends import raised
from brctl.evidence.job.long_phases import excused
from brctl.evidence.job.network.packet_growth import with_growth, worth_a_second_look
from brctl.evidence.job.past.outlived import said_in_passing
from brctl.evidence.job.status import goes_on
from brctl.evidence.job.worker_servers import WorkerAnswer, assess_workers, with_tracebacks
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.signature import Signature
from brctl.evidence.ras.facts import RankFacts
from brctl.evidence.ras.node_evidence import assess_ras
from brctl.evidence.ras.permission import has_nccl
from brctl.model.command import Outcome
from brctl.model.errors import ConfigError
from brctl.model.evidence import Gap, Subject
from brctl.model.evidence_kinds import FLIGHT_RECORDER, NCCL_RAS
from brctl.model.jobs.job import Job
from brctl.model.jobs.job_status import JobStatus
from brctl.model.sweeps.report import NodeReport
from brctl.model.sweeps.sweep import Sweep
from brctl.model.verdict import Verdict
from brctl.playbook.recommend import recommend
from brctl.verdict.gateways import doubted, seen_through

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
    if found.status is not None:
        keep_pace(controller, found.status)
    write_names(controller)


async def diagnose_once(
    controller: Controller,
    job: Job | None,
    names: Sequence[str],
    on_node: Progress | None = None,
    *,
    level: int = 1,
    heavy: tuple[str, ...] = (),
) -> Diagnosis:
    """Look at the nodes (and the job on them) once and decide; stores nothing but the sweep."""
    question = Question(level=level, job=job, heavy=heavy)
    sweep = await sweep_nodes(controller, names, question, on_node)
    sweep, others = await asyncio.gather(
        _ask_again(controller, sweep, question), ask_others(controller, sweep)
    )
    if job is not None:
        sweep = await _count_packets(controller, job, sweep)
    found = await _examine_job(controller, job, sweep) if job else None
    against = past_of(controller).against(names)
    verdicts = conclude(
        sweep,
        found,
        controller.inventory,
        controller.now(),
        others,
        against,
        controller.unusable_checks,
    )
    status = found.status if found else None
    return Diagnosis(
        sweep, status, tuple(_with_move(controller, verdict, names) for verdict in verdicts)
    )


async def _examine_job(controller: Controller, job: Job, sweep: Sweep) -> JobFindings:
    reports = [node.report for node in sweep.nodes]
    past = past_of(controller)
    status = await read_ranks(past, job, reports)
    status = beside_last_look(controller, status, past.look(job))
    status = await _seen_after_a_restart(controller, status)
    status, hang = await _examine_hang(controller, status, reports)
    signatures, unread = log_signatures(controller)
    evidence, gaps = assess_ranks(status, sweep, signatures)
    later = None
    if said_in_passing(evidence, status):
        later = await _read_again(controller, job)
    return JobFindings(status, (evidence, (*gaps, *unread)), hang, later)


def _with_move(controller: Controller, verdict: Verdict, asked: Sequence[str]) -> Verdict:
    through = controller.settings.ssh.gateways == "tree"
    if through:
        verdict = doubted(verdict, asked, controller.inventory)
    history = past_of(controller).history(verdict, controller.now())
    verdict = recommend(verdict, history)
    return seen_through(verdict, controller.inventory) if through else verdict


def dumps_compare(status: JobStatus, asked: Mapping[int, bytes] | None = None) -> bool:
    """Dumps are of one moment while nobody leaves.

    The end of a rank that raised completes, for some of its peers, what others wait in for ever.

    Args:
        status: Of a job that stands still.
        asked: Dumps of ranks whose recorders were asked.
    """
    return (dump_prefix(status.job) != "" or bool(asked)) and not raised(status)


async def _seen_after_a_restart(controller: Controller, status: JobStatus) -> JobStatus:
    """The job asked again, where it may have been started while its nodes were asked."""
    if not may_be_restarted(status):
        return status
    later = await _read_again(controller, status.job)
    return later if goes_on(status, later) else status


async def _read_again(controller: Controller, job: Job) -> JobStatus:
    return await read_ranks(past_of(controller), job, await ask_ranks(controller, job))


async def _examine_hang(
    controller: Controller, status: JobStatus, reports: Sequence[NodeReport]
) -> tuple[JobStatus, Findings]:
    """A job that stands still, looked at twice: with its ranks' stacks, and what they say."""
    if not hangs(status, reports):
        return status, NOTHING
    folder = new_folder(controller.state_dir, status.job.name, controller.now())
    captured = await capture_rounds(controller, status.job, folder, times=1, every_s=0.0)
    later = await _read_again(controller, status.job)
    if goes_on(status, later):
        return later, NOTHING
    facts = facts_of(captured)
    answers = await ask_workers(controller, status.job, facts)
    stacks = with_tracebacks(load_rounds(folder)[-1], answers)
    status, (seen, unseen) = assess_hang(status, stacks)
    looks = [(seen, unseen), (assess_workers(answers, status.job), ())]
    looks.append(await _examine_flight(controller, status, folder, answers))
    looks.append(await examine_loaders(controller, status))
    looks.append(await _examine_nccl(controller, status, facts, folder))
    evidence, gaps = zip(*looks, strict=True)
    return status, (tuple(chain(*evidence)), tuple(chain(*gaps)))


async def _examine_nccl(
    controller: Controller, status: JobStatus, facts: Sequence[RankFacts], folder: Path
) -> Findings:
    """What NCCL itself says, asked last: the question runs inside the job."""
    choice = controller.settings.nccl_ras
    if choice == "off" or not has_nccl(facts):
        return NOTHING
    found = await ask_ras(controller, status, facts, old_too=choice == "old-too")
    keep_raw(folder, found)
    if found.analysis is None:
        return (), (Gap(Subject(""), NCCL_RAS, found.why),)
    return assess_ras(found.analysis, excused(status)), ()


async def _examine_flight(
    controller: Controller, status: JobStatus, folder: Path, answers: Sequence[WorkerAnswer]
) -> Findings:
    """What the ranks' flight recorders say, where they dump files or answer, and the job hangs."""
    job, dumps = status.job, folder / "flight-recorder"
    asked = recorded_in(answers)
    if not dumps_compare(status, asked):
        return NOTHING
    missing = job.world_size - len(asked)
    notes: tuple[str, ...] = ("their worker servers gave none",)
    if dump_prefix(job):
        nodes, fanout = controller.inventory.pick(job.nodes), controller.settings.ssh.fanout
        notes = await collect_dumps(controller.transport, nodes, job, dumps, fanout=fanout)
        missing = min(missing, len(notes))
    write_dumps(asked, dumps)  # later than any file that a rank wrote by itself
    if missing * 2 > job.world_size:
        why = f"{missing} of {job.world_size} ranks have no dump: {notes[0]}"
        return (), (Gap(Subject(""), FLIGHT_RECORDER, why),)
    return assess_dumps(status, *load_dumps(dumps), controller.now())


async def _count_packets(controller: Controller, job: Job, sweep: Sweep) -> Sweep:
    """A longer sample of the network where packets were lost and nobody knows when."""
    if not worth_a_second_look(node.report for node in sweep.nodes):
        return sweep
    later = {report.node: report for report in await ask_network(controller, job)}
    nodes = (
        replace(node, report=with_growth(node.report, later[node.node]))
        if node.node in later
        else node
        for node in sweep.nodes
    )
    return replace(sweep, nodes=tuple(nodes))


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


def log_signatures(controller: Controller) -> tuple[Sequence[Signature], tuple[Gap, ...]]:
    """The rules for log lines; a rule file that cannot be read is a gap, no obstacle."""
    try:
        return controller.log_signatures, ()
    except ConfigError as exc:
        return SHIPPED, (Gap(Subject(""), "log rules of the site", str(exc)),)


async def still_true(controller: Controller, verdict: Verdict) -> bool:
    """Look again at the suspects; whether the same fault still stands on each of them.

    A guard asks this right before nodes are changed: a node may have come back.
    """
    job = controller.jobs.get(verdict.job)
    again = await diagnose_once(controller, job, job.nodes if job else verdict.nodes)
    return any(
        v.fault is verdict.fault and set(verdict.nodes) <= set(v.nodes) for v in again.verdicts
    )
