"""What a probe is told: defaults of its check.yaml, filled with facts of node and job."""

from collections.abc import Callable, Mapping

from brctl.model.inventory import Node
from brctl.model.jobs.job import Job
from brctl.model.sweeps.check import Check

_NODE: Mapping[str, Callable[[Node], object]] = {
    "node.name": lambda node: node.name,
    "node.gpus": lambda node: node.gpus,
    "node.python": lambda node: node.python,
    "node.torch_python": lambda node: node.torch_python or None,
}
_JOB: Mapping[str, Callable[[Job, Node], object]] = {
    "job.name": lambda job, node: job.name,
    "job.ranks": lambda job, node: list(job.ranks_on(node.name)),
    "job.container": lambda job, node: job.container_on(node.name) or None,
    "job.world_size": lambda job, node: job.world_size,
    "job.log_progress": lambda job, node: _log_progress(job),
    "job.log_dir": lambda job, node: str(job.log_dir),
    "job.progress_dir": lambda job, node: str(job.progress_dir),
    "job.checkpoint_dir": lambda job, node: str(job.checkpoint_dir),
    "job.checkpoint_layout": lambda job, node: job.checkpoint_layout,
    "job.checkpoint_names": lambda job, node: job.checkpoint_names,
    "job.slot_directory": lambda job, node: str(job.slot_directory or "") or None,
    "job.model_parallel": lambda job, node: job.model_parallel,
    "job.stall_after_s": lambda job, node: job.stall_after_s,
    "job.code_dir": lambda job, node: str(job.code.directory) if job.code else None,
    "job.code_digest": lambda job, node: job.code.digest or None if job.code else None,
}
LABEL_PREFIX = "node.labels."
SOURCES = (*_NODE, *_JOB)
"""Everything `from:` may name, besides `node.labels.<label>`."""


def is_source(name: str) -> bool:
    """Whether `from:` may name this."""
    return name in SOURCES or (name.startswith(LABEL_PREFIX) and len(name) > len(LABEL_PREFIX))


def fill_parameters(check: Check, node: Node, job: Job | None) -> dict[str, object]:
    """The JSON object for one probe on one node.

    A fact that is not known keeps the default of check.yaml; without a default it is left out, and
    the probe says that it could not measure.
    """
    filled = dict(check.parameters)
    for name, source in check.parameter_sources.items():
        value = _look_up(source, node, job)
        if value is not None:
            filled[name] = value
    filled["deadline_s"] = check.deadline_s
    return filled


def _log_progress(job: Job) -> dict[str, object] | None:
    source = job.log_progress
    return None if source is None else {"log": source.log, "formats": source.patterns}


def _look_up(source: str, node: Node, job: Job | None) -> object:
    if source.startswith(LABEL_PREFIX):
        return node.labels.get(source.removeprefix(LABEL_PREFIX))
    if source in _NODE:
        return _NODE[source](node)
    return _JOB[source](job, node) if job is not None else None
