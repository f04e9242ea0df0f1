"""What a node's answers mean, by the rules its checks declare.

Rule 1: what was not measured is a gap. No default, timeout or odd value becomes a clearing.
Rule 2: only a reading that was taken, was of the right type and was tested can clear.
Rule 3: rules come from check.yaml; what a text line means comes from the tables of `kernel_log`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from brctl.evidence.gpu_names import name_gpus
from brctl.evidence.operators import OPERATORS, MismatchError, Operand, is_number
from brctl.evidence.readers import READERS
from brctl.evidence.reading import RAW_LIMIT
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.evidence_kinds import DRIVER_HANG, SSH
from brctl.model.fault import FaultClass
from brctl.model.sweeps.check import Check, Condition, Rule
from brctl.model.sweeps.report import CheckResult, NodeReport, ProbeStatus, Value

NOT_SUPPORTED = "not supported: "
"""A note that starts so, then a measurement's name or `everything`, says that the hardware has no
such thing: no gap."""


OUT_OF_TIME = "deadline_s reached"
"""A probe's note when it ended itself at its deadline; every probe writes these words."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything one node's report says, and everything it leaves unsaid."""

    evidence: tuple[Evidence, ...]
    gaps: tuple[Gap, ...]


_UNREACHED: Mapping[Outcome, FaultClass | None] = {
    Outcome.ANSWERED: None,
    Outcome.REFUSED: FaultClass.NODE_FAILURE,
    Outcome.UNREACHABLE: FaultClass.NODE_FAILURE,
    Outcome.CONNECT_TIMED_OUT: FaultClass.NODE_FAILURE,
    Outcome.LOGIN_TIMED_OUT: FaultClass.NODE_FAILURE,
    Outcome.COMMAND_TIMED_OUT: FaultClass.NODE_FAILURE,
    Outcome.DIED: FaultClass.NODE_FAILURE,
    # Keys, permissions and babble are as often our side's fault as the node's.
    Outcome.AUTHENTICATION_FAILED: None,
    Outcome.HOST_KEY_MISMATCH: None,
    Outcome.OUTPUT_OVER_LIMIT: None,
    Outcome.UNPARSABLE: None,
    # Busy or drained: the scheduler answered, the node was never asked.
    Outcome.NOT_AVAILABLE: None,
}


def assess(
    report: NodeReport, checks: Mapping[str, Check], previous: NodeReport | None = None
) -> Assessment:
    """Judge one node's report.

    Args:
        report: What the node answered.
        checks: The checks that were asked of it; each must have an answer or becomes a gap.
        previous: The same node's earlier report; growth rules need it.
    """
    evidence: list[Evidence] = []
    gaps: list[Gap] = []
    node = Subject(report.node)
    if report.outcome is not Outcome.ANSWERED:
        gaps.append(Gap(node, "node", f"{report.outcome.value}: {report.why_silent}"))
        evidence.extend(_judge_outcome(report))
    results = {result.check: result for result in report.results}
    earlier = {result.check: result for result in previous.results} if previous else {}
    for name, check in checks.items():
        result = results.pop(name, None) or CheckResult(name, ProbeStatus.MISSING)
        part = _Assessor(report, check, result, earlier.get(name)).assess()
        evidence.extend(part.evidence)
        gaps.extend(part.gaps)
    if _late_without_the_driver(report, checks):
        evidence = [item for item in evidence if item.kind != DRIVER_HANG]
    gaps += [Gap(node, name, "answered a check that was not asked") for name in results]
    named = tuple(name_gpus(report, evidence, previous))
    return Assessment(named, tuple(name_gpus(report, dict.fromkeys(gaps), previous)))


def _late_without_the_driver(report: NodeReport, checks: Mapping[str, Check]) -> bool:
    """Whether checks that ask no driver ran out of time too: then all of the node is slow."""
    return any(
        result.check in checks
        and "nvml" not in checks[result.check].needs
        and (result.status is ProbeStatus.TIMED_OUT or OUT_OF_TIME in result.notes)
        for result in report.results
    )


def _judge_outcome(report: NodeReport) -> Iterator[Evidence]:
    fault = _UNREACHED[report.outcome]
    if fault is not None:
        text = report.detail or f"{report.node} did not answer: {report.outcome.value}"
        yield Evidence(
            kind=f"node.{report.outcome.value}",
            subject=Subject(report.node),
            weight=Weight.HINTS,
            fault=fault,
            role=Role.ROOT,
            source=SSH,
            text=text[:RAW_LIMIT],
            at=report.received_at,
        )


def _why_missing(report: NodeReport) -> str:
    if report.outcome is Outcome.ANSWERED:
        return "the node's answer ended before this check"
    return f"{report.outcome.value}: {report.detail}" if report.detail else report.outcome.value


class _RuleSilentError(Exception):
    """A rule leans on a reading that may be absent, and it is: the rule has nothing to say."""


class _Assessor:
    """One check's result on one node, judged."""

    def __init__(
        self, report: NodeReport, check: Check, result: CheckResult, earlier: CheckResult | None
    ) -> None:
        self._report = report
        self._check = check
        self._result = result
        self._gaps: list[Gap] = []
        self._evidence: list[Evidence] = []
        before = earlier.measurements if earlier else ()
        self._earlier = {(m.name, m.subject): m.value for m in before}
        self._values: dict[tuple[str, str], Value] = {}
        self._by_kind: dict[str, list[tuple[str, Value]]] = {}
        self._not_supported: list[str] = []

    def assess(self) -> Assessment:
        """Evidence and gaps of this check."""
        self._read_status()
        if self._result.status in (ProbeStatus.MEASURED, ProbeStatus.COULD_NOT_MEASURE):
            self._read_notes()
            self._read_measurements()
            self._apply_readers()
            for (name, subject), value in self._values.items():
                self._by_kind.setdefault(name, []).append((subject, value))
            for rule in self._check.rules:
                self._apply(rule)
        return Assessment(tuple(_drop_contradicted(self._evidence)), tuple(self._gaps))

    def _gap(self, why: str, device: str = "", what: str = "") -> None:
        subject = Subject(self._report.node, device)
        self._gaps.append(Gap(subject, what or self._check.name, why[:RAW_LIMIT]))

    def _read_status(self) -> None:
        status = self._result.status
        if status is ProbeStatus.TIMED_OUT:
            self._gap(f"no answer within {self._check.deadline_s:g} s")
            self._suspect_driver()
        elif status is ProbeStatus.PROBE_ERROR:
            self._gap(
                f"the probe failed: {self._result.stderr[-300:].strip() or 'no reason given'}"
            )
        elif status is ProbeStatus.MISSING:
            self._gap(_why_missing(self._report))
        elif status is ProbeStatus.COULD_NOT_MEASURE and not self._result.notes:
            self._gap("the probe could not measure and did not say why")

    def _suspect_driver(self) -> None:
        """A probe of the driver that ran out of time waited for the driver."""
        if "nvml" not in self._check.needs:
            return
        hang = Evidence(
            kind=DRIVER_HANG,
            subject=Subject(self._report.node),
            weight=Weight.HINTS,
            fault=FaultClass.DRIVER_FIRMWARE,
            role=Role.ROOT,
            source=self._check.name,
            text=f"driver hang: NVML did not answer within {self._check.deadline_s:g} s",
            at=self._report.received_at,
        )
        self._evidence.append(hang)

    def _read_notes(self) -> None:
        for note in self._result.notes:
            if note.startswith(NOT_SUPPORTED):
                self._not_supported.append(note.removeprefix(NOT_SUPPORTED))
            else:
                self._gap(note)
            if note == OUT_OF_TIME:
                self._suspect_driver()

    def _read_measurements(self) -> None:
        for measurement in self._result.measurements:
            spec = self._check.measurements.get(measurement.name)
            if spec is None:
                self._gap(f"unknown measurement {measurement.name[:80]!r}", measurement.subject)
            elif not _fits(measurement.value, spec.unit):
                shown = repr(measurement.value)[:80]
                self._gap(f"{spec.name} is {shown}, wanted {spec.unit}", measurement.subject)
            else:
                self._values[measurement.name, measurement.subject] = measurement.value

    def _apply_readers(self) -> None:
        for spec in self._check.measurements.values():
            if not spec.reader:
                continue
            reading = READERS[spec.reader](self._report, self._result, spec)
            self._evidence.extend(reading.evidence)
            self._gaps.extend(reading.gaps)
            self._values |= {(m.name, m.subject): m.value for m in reading.measurements}

    def _apply(self, rule: Rule) -> None:
        found = self._by_kind.get(rule.kind, [])
        if rule.operator == "absent":
            if not found:
                self._conclude(rule, "", "absent", "", matched=True)
            return
        spec = self._check.measurements[rule.kind]
        if not found and not spec.optional and not self._absent_by_design(rule.kind):
            self._gap(f"no reading of {rule.kind}")
        if OPERATORS[rule.operator].growth and not self._earlier:
            return  # nothing can have grown since before the first reading
        for subject, value in found:
            self._apply_to(rule, subject, value)

    def _absent_by_design(self, kind: str) -> bool:
        """Whether the probe said that the hardware has no such thing."""
        return any(note.startswith(("everything", kind)) for note in self._not_supported)

    def _apply_to(self, rule: Rule, subject: str, value: Value) -> None:
        try:
            for condition in rule.given:
                if not self._holds(condition, subject):
                    return
            operand = self._operand(rule.operand, subject)
            reading = self._reading(rule, subject, value)
            matched = OPERATORS[rule.operator].test(reading, operand)
        except _RuleSilentError:
            return
        except (MismatchError, LookupError) as exc:
            self._gap(f"{rule.kind}: {exc.args[0]}", subject)
            return
        self._conclude(rule, subject, value, operand, matched=matched)

    def _reading(self, rule: Rule, subject: str, value: Value) -> Value:
        if not OPERATORS[rule.operator].growth:
            return value
        before = self._earlier.get((rule.kind, subject))
        if before is None:
            raise _RuleSilentError  # new since the last sweep, which said so if it was missed
        if not is_number(before) or not is_number(value):
            raise LookupError("no earlier reading, so growth was not judged")
        return value - before

    def _holds(self, condition: Condition, subject: str) -> bool:
        if condition.operator in ("present", "absent"):
            return (self._find(condition.kind, subject) is not None) == (
                condition.operator == "present"
            )
        value = self._other(condition.kind, subject)
        operand = self._operand(condition.operand, subject)
        return OPERATORS[condition.operator].test(value, operand)

    def _operand(self, operand: object, subject: str) -> Operand:
        if isinstance(operand, dict):
            return self._other(str(operand["measurement"]), subject)
        return operand  # type: ignore[return-value]  # the loader admits nothing else

    def _find(self, kind: str, subject: str) -> Value | None:
        return self._values.get((kind, subject), self._values.get((kind, "")))

    def _other(self, kind: str, subject: str) -> Value:
        value = self._find(kind, subject)
        if value is None and self._check.measurements[kind].optional:
            raise _RuleSilentError
        if value is None:
            raise LookupError(f"no reading of {kind} to compare with")
        return value

    def _conclude(
        self, rule: Rule, subject: str, value: Value, operand: Operand, *, matched: bool
    ) -> None:
        weight = rule.weight if matched else rule.otherwise
        if weight is None:
            return
        shown = _show(value)
        if matched:
            text = (
                rule.say.replace("{value}", shown)
                .replace("{operand}", _show(operand))
                .replace("{subject}", subject or self._report.node)
            )
        else:
            text = f"{rule.kind} is {shown}"
        self._evidence.append(
            Evidence(
                kind=rule.kind,
                subject=Subject(self._report.node, subject),
                weight=weight,
                fault=rule.fault,
                role=rule.role or _role(weight),
                source=self._check.name,
                text=text[:RAW_LIMIT],
                raw=f"{rule.kind} {subject} {shown}".replace("  ", " ")[:RAW_LIMIT],
                at=self._report.received_at,
            )
        )


def _role(weight: Weight) -> Role:
    return Role.ROOT if weight in (Weight.HINTS, Weight.CONVICTS) else Role.CONTEXT


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(_show(item) for item in value)
    return str(value)[:200]


def _fits(value: Value, unit: str) -> bool:
    if unit == "text":
        return isinstance(value, str)
    if unit == "flag":
        return isinstance(value, bool)
    return is_number(value)


def _drop_contradicted(evidence: Iterable[Evidence]) -> Iterator[Evidence]:
    """Leave out a clearing where another rule speaks against the same reading and fault."""
    items = list(evidence)
    against = {
        (e.kind, e.subject, e.fault) for e in items if e.weight in (Weight.HINTS, Weight.CONVICTS)
    }
    for item in items:
        if item.weight is not Weight.CLEARS or (item.kind, item.subject, item.fault) not in against:
            yield item
