"""The logs of a job, fetched from its nodes: the last part of every rank's file."""

from collections.abc import Sequence

from brctl.engine.controller.wiring import Controller
from brctl.engine.job.rank_files import fetch_rank_files
from brctl.engine.logs.classify import Blocks, Classifier
from brctl.evidence.logs.signature import Signature
from brctl.model.jobs.job import Job
from brctl.model.log_verdict import LogClassification

TAIL_BYTES = 1 << 20
"""Per rank: the end holds the cause; whole logs of 9,600 ranks belong on no laptop."""


async def classify_job(
    controller: Controller, job: Job, signatures: Sequence[Signature]
) -> LogClassification:
    """Classify the logs of all ranks together; a rank whose log did not come is noted."""
    files, notes = await fetch_rank_files(
        controller.transport,
        [
            controller.inventory.nodes[name]
            for name in job.nodes
            if name in controller.inventory.nodes
        ],
        job,
        lambda rank: f"{job.log_dir}/rank-{rank:05d}.log",
        limit_bytes=TAIL_BYTES,
        fanout=controller.settings.ssh.fanout,
    )
    inputs = [(f"{f.node}/rank-{f.rank:05d}.log", Blocks([f.data])) for f in files]
    return Classifier(signatures).classify_inputs(inputs, notes, complete=not notes)
