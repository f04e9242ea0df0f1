"""Bind a playbook to inputs and to what was observed: scope of its expressions, digest, timing."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from brctl.model.jobs.job import Job
from brctl.model.nodeset import expand, expand_in_order
from brctl.model.runs.playbook import (
    Arguments,
    Hook,
    InputSpec,
    InputType,
    Json,
    Playbook,
    Safety,
    Step,
)
from brctl.model.units import parse_duration_s, parse_rfc3339, rfc3339
from brctl.model.verdict import Verdict
from brctl.playbook.expressions import (
    KNOWN_AFTER_RUN,
    Literal,
    Scope,
    Value,
    names_in,
    parse_expression,
)
from brctl.playbook.node_runs import ONLY, instance_of
from brctl.playbook.run_record import RunRecord, blank_record
from brctl.playbook.steps import StepState
from brctl.playbook.templates import expand as expand_template
from brctl.playbook.templates import expressions_in
from brctl.playbook.verbs import VERBS

NODES = "nodes"
"""Value of `where` for a script that runs on nodes, not on the controller."""

GIVES_BACK = "node.uncordon"

KEY = "idempotency_key"
"""The argument under which every step that has one gets its key, for the other side to see."""


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


def suspects_in(verdict: Arguments) -> tuple[str, ...]:
    """The nodes that such a scope names."""
    found = verdict.get("suspects")
    return tuple(map(str, found)) if isinstance(found, list) else ()


def job_scope(
    job: Job | None, named: Collection[str] = (), wanted_order: str = ""
) -> dict[str, Json]:
    """What expressions read under `job`; `affected` are its nodes among those the inputs name."""
    if job is None:
        return {
            "name": "", "nodes": [], "affected": [], "ranks": 0, "gpus": 0, "code_change": "",
            "pending_change": "", "wanted_order": "",
        }  # fmt: skip
    return {
        "name": job.name,
        "nodes": list(job.nodes),
        "affected": [node for node in job.nodes if node in named],
        "ranks": job.world_size,
        "gpus": job.world_size,
        "code_change": job.code.change if job.code else "",
        "pending_change": job.code.pending if job.code else "",
        "wanted_order": wanted_order,
    }


def scope_of(
    inputs: Arguments,
    verdict: Arguments,
    job: Arguments,
    run: str,
    record: RunRecord,
    node: str = ONLY,
    known: Arguments | None = None,
) -> Scope:
    """Every name an expression may read now; what a step has not given yet stays unknown.

    With a node, the steps are that node's, and `known` holds `verdicts` and `facts` by node.
    """
    steps: dict[str, Value] = {
        step_id: {"out": _out(record, instance_of(step_id, node))}  # type: ignore[dict-item]  # the marker travels inside until it is read
        for step_id in record.step_ids
    }
    failed = record.node_runs.get(node, record)
    return {
        "inputs": inputs,
        "verdict": verdict,
        "job": job,
        "run": {"id": run or str(KNOWN_AFTER_RUN)},
        "steps": steps,  # type: ignore[dict-item]  # as above
        "failed": {"step": failed.failed_step, "error": failed.failed_error},
        **({"node": node, **(known or {})} if node else {}),
    }


def _out(record: RunRecord, instance: str) -> Value:
    step = record.steps.get(instance)
    return step.out if step is not None and step.state is StepState.DONE else KNOWN_AFTER_RUN


def read_input(spec: InputSpec, value: Json) -> Json:
    """A value of the input's type, checked against its limits.

    Raises:
        ValueError: It does not fit; says why.
        UsageError: A node set is malformed.
    """
    converted = _CONVERSIONS[spec.type](value)
    if spec.values:
        # `--set level=3` arrives as text, and the file says 3.
        for listed in spec.values:
            if str(listed) == str(converted):
                return listed
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


def _nodes_in_order(value: Json) -> Json:
    return list(expand_in_order(value)) if isinstance(value, str) else _nodes(value)


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


def _moment(value: Json) -> Json:
    try:
        return rfc3339(parse_rfc3339(str(value)))
    except ValueError:
        raise ValueError(f"{value!r} is not a moment such as 2026-07-05T12:00:00Z") from None


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping) or value is None:
        raise ValueError(f"{value!r} is not text")
    return value if not isinstance(value, Sequence) or isinstance(value, str) else str(value)


_CONVERSIONS = {
    InputType.NODESET: _nodes,
    InputType.NODELIST: _nodes_in_order,
    InputType.JOB: _plain,
    InputType.DURATION: _duration,
    InputType.MOMENT: _moment,
    InputType.INT: _whole,
    InputType.BOOL: _truth,
    InputType.STRING: _plain,
    InputType.ENUM: _plain,
}


def arguments_of(step: Step, scope: Scope) -> dict[str, Json]:
    """A step's arguments, expanded; of a script its environment and the nodes it runs on."""
    arguments_ = {key: expand_template(value, scope) for key, value in step.arguments.items()}
    if step.run:
        arguments_["env"] = {
            name: expand_template(value, scope) for name, value in step.env.items()
        }
        if step.where == NODES and "node" in scope:
            arguments_.setdefault("nodes", [str(scope["node"])])
    if step.idempotency_key:
        arguments_[KEY] = expand_template(step.idempotency_key, scope)
    return arguments_


def nodes_taken(playbook: Playbook, scopes: Iterable[Scope]) -> tuple[str, ...]:
    """The nodes a playbook takes out of service, as far as they are known before it runs.

    All nodes of all node runs count: the window of a limit is longer than a run.
    """
    takers = [step for step in playbook.steps if step.safety is not Safety.READ and _takes(step)]
    taken: list[str] = []
    for scope in scopes:
        for step in takers:
            value = expand_template(step.arguments.get("nodes"), scope)
            taken += [str(n) for n in _nodes(value)] if value != str(KNOWN_AFTER_RUN) else []  # type: ignore[union-attr]  # _nodes gives a list
    return tuple(dict.fromkeys(taken))


def _takes(step: Step) -> bool:
    return step.uses in VERBS and VERBS[step.uses].takes_nodes


def gives_back(playbook: Playbook) -> bool:
    """Whether a node run puts its node back into service before the next batch begins."""
    return playbook.for_each is not None and any(
        step.uses == GIVES_BACK and step.after != "failure" for step in playbook.steps
    )


def takes_found_nodes(step: Step) -> bool:
    """Whether a step takes nodes that an earlier step finds, so that no plan could count them."""
    return _takes(step) and "steps." in str(step.arguments.get("nodes", ""))


def nodes_named(playbook: Playbook, inputs: Arguments) -> tuple[str, ...]:
    """Every node the inputs name."""
    named: list[str] = []
    for name, spec in playbook.inputs.items():
        value = inputs.get(name)
        if spec.type.names_nodes and isinstance(value, Sequence):
            named += [str(node) for node in value]
    return tuple(dict.fromkeys(named))


def longest_path_s(playbook: Playbook, record: RunRecord | None = None) -> float:
    """Seconds until every timeout and every retry of what is left to do is used up.

    The nodes of a wave run side by side, the waves one after the other.
    """
    record = record or blank_record(playbook)
    return sum(
        max((_left_s(playbook, record, node) for node in wave), default=0.0)
        for wave in record.waves
    )


def _left_s(playbook: Playbook, record: RunRecord, node: str) -> float:
    over = (StepState.DONE, StepState.SKIPPED)
    return sum(
        step.timeout_s * (step.retry.times + 1)
        + sum(step.retry.backoff_s * step.retry.factor**n for n in range(step.retry.times))
        for step in playbook.steps
        if not record.node_runs[node].result
        and record.steps[instance_of(step.id, node)].state not in over
    )


def reads(step: Step, root: str, key: str = "") -> bool:
    """Whether any expression of a step reads this name, or this part of it."""
    texts = [text for text in (step.when, step.skip_if) if text]
    hooks = [hook.arguments for hook in (step.undo, step.verify) if isinstance(hook, Hook)]
    values: list[Json] = [step.arguments, step.env, step.idempotency_key, *hooks]
    for value in values:
        texts += [text for _, text in expressions_in(value)]
    names = [name for text in texts for name in names_in(parse_expression(text))]
    return any(n.root == root and (not key or Literal(key) in n.keys) for n in names)


def digest_of(*parts: Json) -> str:
    """A hash over plain data that does not depend on the order of keys."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
