"""Find every mistake in a playbook before anything runs: names, order, gate, safety, verbs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brctl.model.errors import did_you_mean
from brctl.model.runs.playbook import (
    JOINED_AT_END,
    GuardSpec,
    Hook,
    InputType,
    Json,
    OnFailure,
    Playbook,
    Safety,
    Step,
)
from brctl.playbook.expressions import ExpressionError, Literal, Name, names_in, parse_expression
from brctl.playbook.templates import OPENING, expressions_in
from brctl.playbook.verbs import CHECKS, LOOK_ALWAYS, LOOK_NEVER, VERBS, is_at_least

Location = tuple[str | int, ...]

VERDICT_NAMES = frozenset(
    {"id", "class", "title", "confidence", "score", "suspects", "job", "job_step", "action"}
)
JOB_NAMES = frozenset(
    {"name", "nodes", "affected", "ranks", "gpus", "code_change", "pending_change", "wanted_order"}
)
RUN_NAMES = frozenset({"id"})
FAILED_NAMES = frozenset({"step", "error"})
FACT_NAMES = frozenset(
    {"name", "address", "role", "gpus", "rack", "leaf", "gpu_model", "serial", "gpu_processes"}
)
"""What `facts[node]` knows: the inventory's words, and how many processes compute on its GPUs."""

PER_NODE = {"verdicts": VERDICT_NAMES, "facts": FACT_NAMES}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong, and where in the document."""

    location: Location
    problem: str


@dataclass(frozen=True, slots=True)
class _Names:
    """What an expression may read at one place: root word to its keys, None for any key."""

    roots: Mapping[str, frozenset[str]]
    outs: Mapping[str, frozenset[str]]

    def problem(self, name: Name) -> str | None:
        """What is wrong with a name here, or None."""
        if name.root == "steps":
            return self._step_problem(name)
        if name.root in PER_NODE and "node" in self.roots:
            return _node_problem(name)
        if name.root not in self.roots:
            return f"`{name}`: no such name; {did_you_mean(name.root, [*self.roots, 'steps'])}"
        known = self.roots[name.root]
        keys = _literal_keys(name)
        if not known:
            return f"`{name}`: {name.root!r} has no parts" if keys else None
        if len(keys) != 1 or keys[0] not in known:
            word = keys[0] if keys else ""
            return f"`{name}`: no such {name.root.rstrip('s')}; {did_you_mean(word, known)}"
        return None

    def _step_problem(self, name: Name) -> str | None:
        keys = _literal_keys(name)
        if not keys or keys[0] not in self.outs:
            word = keys[0] if keys else ""
            return f"`{name}`: no earlier step {word!r}; {did_you_mean(word, self.outs)}"
        if len(keys) != 3 or keys[1] != "out":
            return f"`{name}`: write steps.{keys[0]}.out.NAME"
        if keys[2] not in self.outs[keys[0]]:
            known = self.outs[keys[0]]
            return f"`{name}`: step {keys[0]} gives no {keys[2]!r}; {did_you_mean(keys[2], known)}"
        return None


def _node_problem(name: Name) -> str | None:
    """`verdicts[node].action`: of the node whose turn it is, and of no other."""
    keys = _literal_keys(name)
    if len(keys) != 2 or name.keys[0] != Name("node", ()):
        return f"`{name}`: write {name.root}[node].NAME"
    if keys[1] not in PER_NODE[name.root]:
        return f"`{name}`: no such name; {did_you_mean(keys[1], PER_NODE[name.root])}"
    return None


def _literal_keys(name: Name) -> list[str]:
    return [str(key.value) if isinstance(key, Literal) else "[...]" for key in name.keys]


def find_mistakes(playbook: Playbook) -> Iterator[Mistake]:
    """Every mistake in a playbook that its schema alone does not catch."""
    yield from _ids(playbook)
    yield from _gate(playbook)
    for index, step in enumerate(playbook.steps):
        location: Location = ("steps", index)
        names = _names_at(playbook, index)
        yield from _verb(step, location, each_node=playbook.for_each is not None)
        yield from _danger(step, location)
        yield from _joined(playbook, index)
        yield from _step_names(step, location, names)
    everything = _names_of_run(playbook, len(playbook.steps))
    yield from _each_names(playbook)
    yield from _guard_names(playbook)
    yield from _policy_names(playbook)
    for key, hooks in (("on_failure", playbook.on_failure), ("always", playbook.always)):
        for index, hook in enumerate(hooks):
            yield from _hook(hook, (key, index), _with_failure(everything))


def _names_at(playbook: Playbook, index: int) -> _Names:
    """The names at a step: those of the run, its node, and what earlier steps give."""
    outs = {
        step.id: VERBS[step.uses].gives if step.uses in VERBS else frozenset({"exit_status"})
        for step in playbook.steps[:index]
        if _is_over(playbook, step, index)
    }
    node = {"node": frozenset[str]()} if playbook.for_each is not None else {}
    return _Names({**_names_of_run(playbook, 0).roots, **node}, outs)


def _is_over(playbook: Playbook, earlier: Step, index: int) -> bool:
    """Whether the step at this index begins after an earlier one has ended."""
    until = earlier.joined_before
    return not until or any(step.id == until for step in playbook.steps[: index + 1])


def _joined(playbook: Playbook, index: int) -> Iterator[Mistake]:
    """A step beside others decides nothing: it only looks, and the run goes on when it fails."""
    step = playbook.steps[index]
    if not step.joined_before:
        return
    location: Location = ("steps", index, "joined_before")
    later = [JOINED_AT_END, *(other.id for other in playbook.steps[index + 1 :])]
    if step.joined_before not in later:
        problem = f"no later step {step.joined_before!r}; {did_you_mean(step.joined_before, later)}"
        yield Mistake(location, problem)
    if step.safety is not Safety.READ or step.on_failure is not OnFailure.CONTINUE:
        problem = f"step {step.id} runs beside others, so it needs `safety: read` and"
        yield Mistake(location, f"{problem} `on_failure: continue`")


def _names_of_run(playbook: Playbook, index: int) -> _Names:
    """The names outside of steps; with `for_each` no step has one result for the whole run."""
    roots = {
        "inputs": frozenset(playbook.inputs),
        "verdict": VERDICT_NAMES,
        "job": JOB_NAMES,
        "run": RUN_NAMES,
    }
    if playbook.for_each is not None or index == 0:
        return _Names(roots, {})
    return _Names(roots, _names_at(playbook, index).outs)


def _with_failure(names: _Names) -> _Names:
    return _Names({**names.roots, "failed": FAILED_NAMES}, names.outs)


def _ids(playbook: Playbook) -> Iterator[Mistake]:
    ids: set[str] = set()
    for index, step in enumerate(playbook.steps):
        if step.id in ids:
            yield Mistake(("steps", index, "id"), f"step id {step.id!r} is used twice")
        ids.add(step.id)


def _gate(playbook: Playbook) -> Iterator[Mistake]:
    ids = [step.id for step in playbook.steps]
    dangerous = [
        (index, step)
        for index, step in enumerate(playbook.steps)
        if step.safety in (Safety.DISRUPTIVE, Safety.DESTRUCTIVE)
    ]
    if playbook.approval is None:
        for index, step in dangerous:
            if step.safety is Safety.DESTRUCTIVE:
                problem = f"step {step.id} is destructive and there is no `approval` gate"
                yield Mistake(("steps", index), problem)
        return
    gate = playbook.approval.gate_before
    if gate not in ids:
        problem = f"`gate_before`: no step {gate!r}; {did_you_mean(gate, ids)}"
        yield Mistake(("approval", "gate_before"), problem)
        return
    for index, step in dangerous:
        if index < ids.index(gate):
            problem = f"step {step.id} is {step.safety} but comes before the approval gate `{gate}`"
            yield Mistake(("steps", index), problem)


def _script_nodes(step: Step, location: Location, *, each_node: bool) -> Iterator[Mistake]:
    """A script takes no arguments but the nodes it runs on."""
    on_nodes = step.where == "nodes"
    for key in step.arguments:
        if key != "nodes" or not on_nodes:
            problem = f"a script takes no {key!r}; pass values through `env`"
            yield Mistake((*location, "with", key), problem)
    if on_nodes and "nodes" not in step.arguments and not each_node:
        problem = f"step {step.id}: `where: nodes` needs `with: {{nodes: ...}}`"
        yield Mistake((*location, "where"), problem)


def _verb(step: Step, location: Location, *, each_node: bool) -> Iterator[Mistake]:
    if not step.uses:
        if OPENING in step.run:
            problem = (
                f"step {step.id}: `run` is never expanded, so `$(...)` in it would reach the"
                " shell; pass the value through `env`"
            )
            yield Mistake((*location, "run"), problem)
        yield from _script_nodes(step, location, each_node=each_node)
        return
    yield from _known_verb(step.uses, step.arguments, location)


def _known_verb(uses: str, arguments: Mapping[str, Json], location: Location) -> Iterator[Mistake]:
    verb = VERBS.get(uses)
    if verb is None:
        problem = f"unknown verb {uses!r}; {did_you_mean(uses, VERBS)}"
        yield Mistake((*location, "uses"), problem)
        return
    known = verb.required | verb.optional
    for key in arguments:
        if key not in known:
            problem = f"{uses} takes no {key!r}; {did_you_mean(key, known)}"
            yield Mistake((*location, "with", key), problem)
    for key in sorted(verb.required - set(arguments)):
        yield Mistake((*location, "uses"), f"{uses} needs `with.{key}`")


MUST_UNDO = ("node.", "standby.", "job.", "ansible.")
"""Verbs whose changes nobody may forget; a ticket is not taken back."""


def _danger(step: Step, location: Location) -> Iterator[Mistake]:
    verb = VERBS.get(step.uses)
    if verb is not None and not is_at_least(step.safety, verb.safety):
        problem = (
            f"step {step.id}: {step.uses} is {verb.safety}, so `safety` cannot be {step.safety}"
        )
        yield Mistake((*location, "safety"), problem)
    if step.uses == "ansible.playbook":
        yield from _ansible(step, location)
    leaves_traces = step.uses.startswith(MUST_UNDO) or not step.uses
    if step.safety is Safety.REVERSIBLE and step.undo is None and leaves_traces:
        yield Mistake(
            location, f"step {step.id} is reversible, so it needs `undo` (auto or a verb)"
        )
    if step.undo == "auto" and (verb is None or not verb.undoable):
        problem = f"step {step.id}: {step.uses or 'a script'} has no built-in undo; name a verb"
        yield Mistake((*location, "undo"), problem)


def _ansible(step: Step, location: Location) -> Iterator[Mistake]:
    """What Ansible does is not ours to judge, so a step that only looks must make it look only."""
    check = str(step.arguments.get("check", LOOK_NEVER))
    if check not in CHECKS and OPENING not in check:
        problem = f"`check`: unknown {check!r}; {did_you_mean(check, CHECKS)}"
        yield Mistake((*location, "with", "check"), problem)
    elif step.safety is Safety.READ and check != LOOK_ALWAYS:
        problem = f"step {step.id} is read, so it needs `check: always`: Ansible then only looks"
        yield Mistake((*location, "safety"), problem)


def _step_names(step: Step, location: Location, names: _Names) -> Iterator[Mistake]:
    own = _with_failure(names) if step.after != "success" else names
    for key in ("when", "skip_if"):
        yield from _bare((*location, key), getattr(step, key), own)
    yield from _templates((*location, "with"), step.arguments, own)
    yield from _templates((*location, "env"), step.env, own)
    yield from _templates((*location, "idempotency_key"), step.idempotency_key, own)
    for key, hook in (("undo", step.undo), ("verify", step.verify)):
        if isinstance(hook, Hook):
            yield from _hook(hook, (*location, key), own)


def _hook(hook: Hook, location: Location, names: _Names) -> Iterator[Mistake]:
    yield from _known_verb(hook.uses, hook.arguments, location)
    yield from _templates((*location, "with"), hook.arguments, names)


def _each_names(playbook: Playbook) -> Iterator[Mistake]:
    each, names = playbook.for_each, _names_of_run(playbook, 0)
    if each is not None:
        yield from _templates(("for_each", "node"), each.node, names)
        yield from _templates(("for_each", "batch"), each.batch, names)


def _guard_names(playbook: Playbook) -> Iterator[Mistake]:
    names = _names_of_run(playbook, 0)
    for index, guard in enumerate(playbook.guards):
        yield from _templates(("guards", index, guard.kind), guard.parameters, names)
        if guard.kind == "lock":
            yield from _lock_keys(playbook, guard, ("guards", index, guard.kind, "keys"))


def _lock_keys(playbook: Playbook, guard: GuardSpec, location: Location) -> Iterator[Mistake]:
    """A key that names no input would lock nothing, and nobody would notice."""
    keys = guard.parameters.get("keys", ())
    lockable = [
        name
        for name, spec in playbook.inputs.items()
        if spec.type.names_nodes or spec.type is InputType.JOB
    ]
    for key in keys if isinstance(keys, list) else [str(keys)]:
        if key not in lockable:
            problem = f"lock: no input {key!r} of type nodeset or job"
            yield Mistake(location, f"{problem}; {did_you_mean(str(key), lockable)}")


def _policy_names(playbook: Playbook) -> Iterator[Mistake]:
    if playbook.approval is not None:
        for index, policy in enumerate(playbook.approval.policy):
            location = ("approval", "policy", index, "when")
            yield from _bare(location, policy.when, _names_of_run(playbook, 0))


def _bare(location: Location, text: str, names: _Names) -> Iterator[Mistake]:
    if not text:
        return
    if OPENING in text:
        yield Mistake(
            location, f"`{location[-1]}` is an expression already; write it without `$(...)`"
        )
        return
    yield from _expression(location, text, names)


def _templates(location: Location, value: Json, names: _Names) -> Iterator[Mistake]:
    try:
        found = list(expressions_in(value))
    except ExpressionError as exc:
        yield Mistake(location, str(exc))
        return
    for inside, text in found:
        yield from _expression((*location, *inside), text, names)


def _expression(location: Location, text: str, names: _Names) -> Iterator[Mistake]:
    try:
        tree = parse_expression(text)
    except ExpressionError as exc:
        yield Mistake(location, str(exc))
        return
    for name in names_in(tree):
        problem = names.problem(name)
        if problem:
            yield Mistake(location, problem)


SITE_NAMES = _Names(
    {"verdict": VERDICT_NAMES, "job": JOB_NAMES, "nodes": frozenset(), "playbook": frozenset()}, {}
)
"""What a condition in guards.yaml may read: it must fit every playbook."""


def check_condition(text: str) -> str | None:
    """What is wrong with a condition of guards.yaml, or None."""
    return next((mistake.problem for mistake in _bare(("when",), text, SITE_NAMES)), None)
