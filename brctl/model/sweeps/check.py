"""A named question to a node: its probe, its measurements, and the rules that judge them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import Value


@dataclass(frozen=True, slots=True)
class MeasurementSpec:
    """What a probe may report under one name.

    Attributes:
        unit: `text`, `flag`, or the unit of a number; decides which values are accepted.
        optional: Absence is normal (an exit status of a living rank), so it is not a gap.
        reader: How the controller reads the value besides the rules: "" or a name from
            `evidence.readers.READERS`.
    """

    name: str
    unit: str
    what: str
    optional: bool = False
    reader: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """A test of another reading of the same subject, or of the node when the subject has none."""

    kind: str
    operator: str
    operand: Value | tuple[Value, ...] | Mapping[str, Value] | None


@dataclass(frozen=True, slots=True)
class Rule:
    """One judgement, as data.

    Attributes:
        kind: The measurement it judges.
        operator: A name from the closed list in `evidence.operators`.
        operand: A value, a list, or `{"measurement": name}` for another reading of one subject.
        weight: What a match says.
        fault: The class it speaks about; None for context.
        say: Sentence with `{value}`, `{subject}` and `{operand}`; nothing else is replaced.
        source: Where the threshold comes from.
        otherwise: What a reading that does not match says; CLEARS, or None for nothing.
        given: The rule speaks only where all of these hold.
        role: Place in the chain of events; None follows from the weight.
    """

    kind: str
    operator: str
    operand: Value | tuple[Value, ...] | Mapping[str, Value] | None
    weight: Weight
    fault: FaultClass | None
    say: str
    source: str
    otherwise: Weight | None = None
    given: tuple[Condition, ...] = ()
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A check as its folder declares it.

    Attributes:
        level: 1 safe beside a running job, 2 minutes, 3 about 15 minutes, 4 hours.
        needs: Subset of {"root", "torch", "nvml", "gpu", "job"}.
        tools: Programs the probe calls on the node.
        deadline_s: Seconds the probe may take before it is abandoned.
        parameters: Defaults of the JSON object the probe reads on stdin.
        parameter_sources: Parameter -> where the controller takes it from, `node.gpus`; the
            closed vocabulary is `library.parameters.SOURCES`.
        probe_source: The program that runs on the node; "" when `together`.
        root_command: The one command that is enough as root, where the login may do no more.
        together: Nodes are tested with each other by the engine, so two are needed.
        cross_check: A command a person can run to see the same values.
    """

    name: str
    title: str
    why: str
    source: str
    level: int
    needs: frozenset[str]
    tools: tuple[str, ...]
    deadline_s: float
    parameters: Mapping[str, object]
    measurements: Mapping[str, MeasurementSpec]
    rules: tuple[Rule, ...]
    cross_check: str
    probe_source: str
    disruptive: bool = False
    stream: bool = False
    together: bool = False
    origin: str = ""
    profiles: frozenset[str] = field(default_factory=frozenset)
    parameter_sources: Mapping[str, str] = field(default_factory=dict)
    root_command: tuple[str, ...] = ()
