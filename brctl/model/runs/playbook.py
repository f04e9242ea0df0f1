"""A playbook as its file says it: inputs, guards, approval, steps; nothing is evaluated yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from brctl.model.verdict import Confidence

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""What YAML and JSON can hold."""

Arguments = Mapping[str, Json]


class Safety(StrEnum):
    """What a step may do; drives dry run, approval, and what a crash in the middle means."""

    READ = "read"
    REVERSIBLE = "reversible"
    DISRUPTIVE = "disruptive"
    DESTRUCTIVE = "destructive"


class Risk(StrEnum):
    """How hard the confirmation is: `y`, the verb and the count, or the job's name."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class InputType(StrEnum):
    """What an input holds."""

    NODESET = "nodeset"
    NODELIST = "nodelist"
    JOB = "job"
    DURATION = "duration"
    MOMENT = "moment"
    INT = "int"
    BOOL = "bool"
    STRING = "string"
    ENUM = "enum"

    @property
    def names_nodes(self) -> bool:
        """Whether a value is a list of node names."""
        return self in (InputType.NODESET, InputType.NODELIST)


class OnFailure(StrEnum):
    """What a failed step does to its run."""

    ROLLBACK = "rollback"
    STOP = "stop"
    CONTINUE = "continue"
    NEXT_NODE = "next_node"
    ESCALATE = "escalate"


class Need(StrEnum):
    """How many people must say yes; ordered by strictness in `playbook.approvals`."""

    NONE = "none"
    ONE = "one"
    TWO = "two"


class OnExpire(StrEnum):
    """What an approval nobody gave in time does."""

    STOP_SAFE = "stop_safe"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One declared input.

    Attributes:
        source: Where its value comes from when nobody sets it, `verdict.suspects`; "" for nowhere.
        maximum: Largest number, or most nodes of a node set.
    """

    name: str
    type: InputType
    required: bool = False
    default: Json = None
    source: str = ""
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[Json, ...] = ()
    help: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed attempt is repeated, and after which kinds of failure."""

    times: int = 0
    backoff_s: float = 5.0
    factor: float = 2.0
    only: frozenset[str] = frozenset({"transport", "timeout"})


@dataclass(frozen=True, slots=True)
class GuardSpec:
    """One limit, with the `file:line` that a refusal names."""

    kind: str
    parameters: Arguments
    origin: str


@dataclass(frozen=True, slots=True)
class Policy:
    """One row of an approval policy; `when` is an expression, "" matches always.

    Attributes:
        role: Unix group of the people who count; "" counts everybody.
        starter_counts: Whoever started the run may be one of two.
    """

    need: Need
    when: str = ""
    role: str = ""
    starter_counts: bool = False
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalSpec:
    """Before which step people are asked, how many, and what silence means."""

    gate_before: str
    policy: tuple[Policy, ...]
    expires_s: float = 900.0
    on_expire: OnExpire = OnExpire.STOP_SAFE


@dataclass(frozen=True, slots=True)
class Hook:
    """A verb that runs beside the steps and cannot change a run's result."""

    uses: str
    arguments: Arguments
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ForEach:
    """Run all steps once per node, the canaries alone first, then in batches.

    Attributes:
        max_failed_ratio: Above it the run pauses and asks; None when a count is given.
    """

    node: Json
    batch: Json = 1
    canary: int = 0
    max_failed_count: int | None = None
    max_failed_ratio: float | None = None


JOINED_AT_END = "end"
"""Value of `joined_before`: no step waits for it, the end of the run does."""


@dataclass(frozen=True, slots=True)
class Step:
    """One verb on its arguments.

    Attributes:
        uses: Verb from `playbook.verbs`; "" when the step runs a script.
        run: Script text of a `run:` step; never expanded.
        after: `success`, `failure` or `always`: which earlier outcome lets the step run.
        joined_before: The later step that waits for this one, or `end`; those before it run beside
            it. "" for a step that the next one waits for.
        undo: `auto`, a hook, or None when nothing can be undone.
        expect_exit: Exit statuses of a script that count as success.
    """

    id: str
    name: str
    uses: str
    safety: Safety
    arguments: Arguments = field(default_factory=dict)
    run: str = ""
    env: Mapping[str, Json] = field(default_factory=dict)
    where: str = "controller"
    when: str = ""
    skip_if: str = ""
    after: str = "success"
    joined_before: str = ""
    undo: Hook | str | None = None
    verify: Hook | None = None
    timeout_s: float = 120.0
    retry: Retry = Retry()
    on_failure: OnFailure = OnFailure.ROLLBACK
    expect_exit: tuple[int, ...] = (0,)
    idempotency_key: str = ""
    origin: str = ""

    @property
    def verb(self) -> str:
        """What it does, for people: its verb, or `run` for a script."""
        return self.uses or "run"


@dataclass(frozen=True, slots=True)
class Playbook:
    """A validated file.

    Attributes:
        classes: Fault class patterns that `fix` may match, `gpu-*`.
        sha256: Digest of the exact bytes, so that a run can prove which text it follows.
        text: Those bytes; a run keeps its own copy.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    text: bytes = field(repr=False)
    sha256: str
    path: str
    owner: str = ""
    risk: Risk = Risk.MEDIUM
    runbook: str = ""
    tags: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    min_confidence: Confidence = Confidence.HIGH
    inputs: Mapping[str, InputSpec] = field(default_factory=dict)
    guards: tuple[GuardSpec, ...] = ()
    approval: ApprovalSpec | None = None
    for_each: ForEach | None = None
    on_failure: tuple[Hook, ...] = ()
    always: tuple[Hook, ...] = ()

    def step(self, name: str) -> Step:
        """The step of an id, or of its instance `id@node`; KeyError when there is none."""
        step_id = name.partition("@")[0]
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(name)
