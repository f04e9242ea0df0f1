"""Bind a playbook to inputs and to what was observed: scope of its expressions, digest, timing."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from brctl.model.job import Job
from brctl.model.nodeset import expand
from brctl.model.playbook import Arguments, InputSpec, InputType, Json, Playbook, Step
from brctl.model.units import parse_duration_s
from brctl.model.verdict import Verdict
from brctl.playbook.expressions import KNOWN_AFTER_RUN, Scope, Value
from brctl.playbook.replay import RunRecord
from brctl.playbook.steps import StepState
from brctl.playbook.templates import expand as expand_template
from brctl.playbook.verbs import VERBS


def verdict_scope(verdict: Verdict | None) -> dict[str, Json]:
    """What expressions read under `verdict`; a run a person asked for has an empty one."""
    if verdict is None:
        return {
            "id": "", "class": "", "title": "asked for by hand", "confidence": "", "score": 0.0,
            "suspects": [], "job": "", "job_step": 0, "action": "",
        }  # fmt: skip
    return {
        "id": verdict.id,
        "class": str(verdict.fault),
        "title": verdict.title,
        "confidence": str(verdict.confidence),
        "score": verdict.probability,
        "suspects": list(verdict.nodes),
        "job": verdict.job,
        "job_step": verdict.job_step or 0,
        "action": str(verdict.action),
    }


def job_scope(job: Job | None) -> dict[str, Json]:
    """What expressions read under `job`."""
    if job is None:
        return {"name": "", "nodes": [], "ranks": 0, "gpus": 0}
    return {
        "name": job.name,
        "nodes": list(job.nodes),
        "ranks": job.world_size,
        "gpus": job.world_size,
    }


def scope_of(
    inputs: Arguments, verdict: Arguments, job: Arguments, run: str, record: RunRecord
) -> Scope:
    """Every name an expression may read now; what a step has not given yet stays unknown."""
    steps: dict[str, Value] = {
        name: {"out": step.out if step.state is StepState.DONE else KNOWN_AFTER_RUN}  # type: ignore[dict-item]  # the marker travels inside until it is read
        for name, step in record.steps.items()
    }
    return {
        "inputs": inputs,
        "verdict": verdict,
        "job": job,
        "run": {"id": run or str(KNOWN_AFTER_RUN)},
        "steps": steps,  # type: ignore[dict-item]  # as above
        "failed": {"step": record.failed_step, "error": record.failed_error},
    }


def read_input(spec: InputSpec, value: Json) -> Json:
    """A value of the input's type, checked against its limits.

    Raises:
        ValueError: It does not fit; says why.
        UsageError: A node set is malformed.
    """
    converted = _CONVERSIONS[spec.type](value)
    if spec.values and converted not in spec.values:
        raise ValueError(f"{converted!r} is not one of {', '.join(map(str, spec.values))}")
    size = len(converted) if isinstance(converted, Sequence) else converted
    if isinstance(size, int | float) and not isinstance(size, bool):
        if spec.maximum is not None and size > spec.maximum:
            raise ValueError(f"{size:g} is more than {spec.maximum:g}")
        if spec.minimum is not None and size < spec.minimum:
            raise ValueError(f"{size:g} is less than {spec.minimum:g}")
    return converted


def _nodes(value: Json) -> Json:
    if isinstance(value, str):
        return list(expand(value))
    if isinstance(value, Sequence):
        return [name for item in value for name in expand(str(item))]
    raise ValueError(f"{value!r} names no nodes")


def _whole(value: Json) -> Json:
    text = str(value)
    if isinstance(value, bool) or not text.removeprefix("-").isdecimal():
        raise ValueError(f"{value!r} is not a whole number")
    return int(text)


def _truth(value: Json) -> Json:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f"{value!r} is neither true nor false")


def _duration(value: Json) -> Json:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else parse_duration_s(str(value))


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping) or value is None:
        raise ValueError(f"{value!r} is not text")
    return value if not isinstance(value, Sequence) or isinstance(value, str) else str(value)


_CONVERSIONS = {
    InputType.NODESET: _nodes,
    InputType.JOB: _plain,
    InputType.DURATION: _duration,
    InputType.INT: _whole,
    InputType.BOOL: _truth,
    InputType.STRING: _plain,
    InputType.ENUM: _plain,
}


def arguments_of(step: Step, scope: Scope) -> dict[str, Json]:
    """A step's arguments, expanded."""
    return {key: expand_template(value, scope) for key, value in step.arguments.items()}


def nodes_taken(playbook: Playbook, scope: Scope) -> tuple[str, ...]:
    """The nodes a playbook takes out of service, as far as they are known before it runs."""
    taken: list[str] = []
    for step in playbook.steps:
        verb = VERBS.get(step.uses)
        if verb is not None and verb.takes_nodes:
            value = arguments_of(step, scope).get("nodes")
            taken += [str(n) for n in _nodes(value)] if value != str(KNOWN_AFTER_RUN) else []  # type: ignore[union-attr]  # _nodes gives a list
    return tuple(dict.fromkeys(taken))


def takes_found_nodes(step: Step) -> bool:
    """Whether a step takes nodes that an earlier step finds, so that no plan could count them."""
    verb = VERBS.get(step.uses)
    takes = verb is not None and verb.takes_nodes
    return takes and "steps." in str(step.arguments.get("nodes", ""))


def nodes_named(playbook: Playbook, inputs: Arguments) -> tuple[str, ...]:
    """Every node the inputs name."""
    named: list[str] = []
    for name, spec in playbook.inputs.items():
        value = inputs.get(name)
        if spec.type is InputType.NODESET and isinstance(value, Sequence):
            named += [str(node) for node in value]
    return tuple(dict.fromkeys(named))


def longest_path_s(playbook: Playbook, record: RunRecord | None = None) -> float:
    """Seconds until every timeout and every retry of what is left to do is used up."""
    over = (StepState.DONE, StepState.SKIPPED)
    return sum(
        step.timeout_s * (step.retry.times + 1)
        + sum(step.retry.backoff_s * step.retry.factor**n for n in range(step.retry.times))
        for step in playbook.steps
        if record is None or record.steps[step.id].state not in over
    )


def digest_of(*parts: Json) -> str:
    """A hash over plain data that does not depend on the order of keys."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
