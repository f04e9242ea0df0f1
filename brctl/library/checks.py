"""Load checks: one folder each, `<dir>/<domain>/<check>/check.yaml` beside `probe.py`."""

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from brctl.evidence.operators import OPERATORS, is_number
from brctl.evidence.readers import READERS
from brctl.library.foreign import read_foreign
from brctl.library.parameters import LABEL_PREFIX, SOURCES, is_source
from brctl.library.schema import Section, open_kind
from brctl.library.shipped import joined_program, shipped_dir
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import read_whole, refuse_untrusted
from brctl.model.errors import ConfigError, did_you_mean
from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.check import Check, Condition, MeasurementSpec, Rule
from brctl.model.sweeps.report import Value

PROBE_LIMIT_BYTES = 256 << 10
"""A probe travels to every node of a sweep; a larger file is not a probe."""

NEEDS = ("root", "torch", "nvml", "gpu", "job")
_KEYS = (
    "name", "title", "why", "source", "level", "needs", "tools", "deadline", "parameters",
    "measurements", "evidence", "cross_check", "disruptive", "stream", "profiles",
    "foreign", "together", "root_command",
)  # fmt: skip
_RULE_KEYS = ("kind", "when", "given", "weight", "fault", "role", "say", "source", "otherwise")
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+@:,=-]+")
_PLACEHOLDERS = {"value", "subject", "operand"}
_OPERAND_TYPES = {"number": "a number", "text": "text", "mask": "a whole number", "true": "true"}

Operand = Value | tuple[Value, ...] | Mapping[str, Value] | None


def load_checks(dirs: Iterable[Path]) -> Mapping[str, Check]:
    """All checks by name, sorted; a later folder's check replaces an earlier one of that name.

    Raises:
        ConfigError: A check.yaml or its probe is invalid; names file and line.
    """
    found: dict[str, Check] = {}
    for folder in dirs:
        for path in sorted(folder.glob("*/*/check.yaml")):
            check = load_check(path)
            found[check.name] = check
    return dict(sorted(found.items()))


def site_checks(library_dirs: Iterable[Path] = ()) -> Mapping[str, Check]:
    """The shipped checks and, replacing those of the same name, a site's own; see below."""
    return usable_checks(library_dirs)[0]


def usable_checks(
    library_dirs: Iterable[Path] = (),
) -> tuple[Mapping[str, Check], Mapping[str, str]]:
    """The checks that can be used, and why each of the others cannot.

    A check of the site that cannot be used is left out alone, and said on stderr; where it stands
    for a shipped one, that is left out too: its limits are not those of the site.

    Raises:
        ConfigError: A shipped check.yaml or its probe is invalid; names file and line.
    """
    found, unusable = dict(load_checks((shipped_dir("checks"),))), dict[str, str]()
    for path in (
        path for each in library_dirs for path in sorted(each.glob("checks/*/*/check.yaml"))
    ):
        name = f"{path.parent.parent.name}.{path.parent.name}"
        found.pop(name, None)
        try:
            found[name] = load_check(path)
        except ConfigError as exc:
            unusable[name] = str(exc).partition("\n")[0]
            logging.getLogger(__name__).warning("check %s left out: %s", name, unusable[name])
    return dict(sorted(found.items())), unusable


def load_check(path: Path) -> Check:
    """One check from its check.yaml and the probe.py beside it."""
    is_shipped = path.resolve().is_relative_to(shipped_dir("checks"))
    if not is_shipped:
        refuse_untrusted(path)
    top = open_kind(load_document(path, shipped=is_shipped), "Check", _KEYS)
    name = top.value("name", str)
    wanted = f"{path.parent.parent.name}.{path.parent.name}"
    if name != wanted:
        raise top.error(f"name must be {wanted!r}, as its folder says, not {name!r}", "name")
    together = top.value("together", bool, default=False)
    foreign = read_foreign(top.section("foreign"), name) if "foreign" in top.data else None
    if foreign is None:
        measurements = _read_measurements(top.section("measurements"), name)
        parameters, sources = _read_parameters(top.section("parameters"))
        rules = tuple(_read_rule(rule, measurements) for rule in top.sections("evidence"))
        probe_source = "" if together else _read_probe(path.parent, shipped=is_shipped)
    else:
        _refuse_own_parts(top)
        measurements, rules = dict(foreign.measurements), foreign.rules
        parameters, sources = dict(foreign.parameters), {}
        probe_source = foreign.probe_source
    return Check(
        name=name,
        title=_text(top, "title"),
        why=_text(top, "why"),
        source=_text(top, "source"),
        level=_read_level(top),
        needs=_read_needs(top),
        tools=top.texts("tools", ()),
        deadline_s=top.duration_s("deadline"),
        parameters=parameters,
        measurements=measurements,
        rules=rules,
        cross_check=_text(top, "cross_check"),
        probe_source=probe_source,
        disruptive=top.value("disruptive", bool, default=False),
        stream=top.value("stream", bool, default=False),
        together=together,
        origin=str(path),
        profiles=frozenset(top.texts("profiles", ())),
        parameter_sources=sources,
        root_command=_read_root_command(top),
    )


def _refuse_own_parts(top: Section) -> None:
    """A foreign program brings no readings of its own, so nothing may judge them."""
    for key in ("measurements", "evidence", "parameters"):
        if key in top.data:
            raise top.error(f"{key!r} does not go with 'foreign'", key)


def _text(section: Section, key: str) -> str:
    text = section.value(key, str).strip()
    if not text:
        raise section.error(f"{key!r} must not be empty", key)
    return text


def _read_level(top: Section) -> int:
    level = top.value("level", int)
    if level not in (1, 2, 3, 4):
        raise top.error(f"'level' must be 1, 2, 3 or 4, not {level}", "level")
    return level


def _read_needs(top: Section) -> frozenset[str]:
    needs = top.texts("needs", ())
    for index, need in enumerate(needs):
        if need not in NEEDS:
            problem = f"'needs': unknown {need!r}; {did_you_mean(need, NEEDS)}"
            raise top.error(problem, "needs", index)
    return frozenset(needs)


def _read_root_command(top: Section) -> tuple[str, ...]:
    """It becomes a line of sudoers, where a wildcard would allow more than it says."""
    command = top.texts("root_command", ())
    for index, word in enumerate(command):
        if not _PLAIN_WORD.fullmatch(word):
            problem = f"'root_command': {word!r} has a character that sudoers reads otherwise"
            raise top.error(problem, "root_command", index)
    if command and not command[0].startswith("/"):
        raise top.error(f"'root_command': {command[0]!r} needs its whole path", "root_command")
    return command


def _read_probe(folder: Path, *, shipped: bool) -> str:
    """The probe's source; ours is Python by its tests, anybody else's is looked at."""
    path = folder / "probe.py"
    if not shipped:
        refuse_untrusted(path)
    raw = read_whole(path, PROBE_LIMIT_BYTES)
    try:
        source = raw.decode("utf-8")
        if not shipped:
            compile(source, str(path), "exec", dont_inherit=True)
    except (UnicodeDecodeError, ValueError) as exc:
        raise ConfigError(f"{path}: not Python source: {exc}") from exc
    except SyntaxError as exc:
        raise ConfigError.at(path, exc.lineno, f"not Python: {exc.msg}") from exc
    return joined_program(source) if shipped else source


def _read_measurements(section: Section, check: str) -> dict[str, MeasurementSpec]:
    if not section.data:
        raise section.error(f"check {check!r} must declare at least one measurement")
    return {name: _read_measurement(section.section(name), name) for name in section.data}


def _read_measurement(spec: Section, name: str) -> MeasurementSpec:
    spec.allow(("unit", "what", "optional", "reader"))
    reader = spec.optional("reader", str) or ""
    if reader and reader not in READERS:
        raise spec.error(f"'reader': unknown {reader!r}; {did_you_mean(reader, READERS)}", "reader")
    return MeasurementSpec(
        name=name,
        unit=_text(spec, "unit"),
        what=_text(spec, "what"),
        optional=spec.value("optional", bool, default=False),
        reader=reader,
    )


def _read_parameters(section: Section) -> tuple[dict[str, object], dict[str, str]]:
    """Literal values, and where the controller takes the others from."""
    literals: dict[str, object] = {}
    sources: dict[str, str] = {}
    for name, value in section.data.items():
        if not isinstance(value, dict):
            literals[name] = value
            continue
        here = section.section(name)
        here.allow(("from", "default"))
        source = here.value("from", str)
        if not is_source(source):
            known = (*SOURCES, LABEL_PREFIX + "LABEL")
            raise here.error(f"'from': unknown {source!r}; {did_you_mean(source, known)}", "from")
        sources[name] = source
        if here.data.get("default") is not None:
            literals[name] = here.data["default"]
    return literals, sources


def _read_rule(rule: Section, measurements: Mapping[str, MeasurementSpec]) -> Rule:
    rule.allow(_RULE_KEYS)
    kind = rule.choice("kind", measurements)
    operator, operand = _read_test(rule.section("when"), measurements)
    fault = rule.optional("fault", str)
    weight = Weight(rule.choice("weight", list(Weight)))
    if fault is not None and fault not in list(FaultClass):
        raise rule.error(f"'fault': unknown {fault!r}; {did_you_mean(fault, FaultClass)}", "fault")
    if fault is None and weight is not Weight.CONTEXT:
        raise rule.error(f"a rule that {weight.value} needs the key 'fault'")
    otherwise = rule.optional("otherwise", str)
    if otherwise not in (None, Weight.CLEARS.value):
        raise rule.error("'otherwise' can only be 'clears'", "otherwise")
    role = rule.optional("role", str)
    return Rule(
        kind=kind,
        operator=operator,
        operand=operand,
        weight=weight,
        fault=FaultClass(fault) if fault else None,
        say=_read_sentence(rule),
        source=_text(rule, "source"),
        otherwise=Weight(otherwise) if otherwise else None,
        given=_read_conditions(rule.section("given"), measurements),
        role=Role(rule.choice("role", list(Role))) if role else None,
    )


def _read_sentence(rule: Section) -> str:
    say = _text(rule, "say")
    for part in say.split("{")[1:]:
        name = part.split("}")[0]
        if "}" not in part or name not in _PLACEHOLDERS:
            known = ", ".join(f"{{{placeholder}}}" for placeholder in sorted(_PLACEHOLDERS))
            raise rule.error(f"'say': {{{name}}} is not a placeholder; known: {known}", "say")
    return say


def _read_conditions(
    section: Section, measurements: Mapping[str, MeasurementSpec]
) -> tuple[Condition, ...]:
    section.allow(measurements)
    tests = [(kind, _read_test(section.section(kind), measurements)) for kind in section.data]
    return tuple(Condition(kind, operator, operand) for kind, (operator, operand) in tests)


def _read_test(
    section: Section, measurements: Mapping[str, MeasurementSpec]
) -> tuple[str, Operand]:
    if len(section.data) != 1:
        raise section.error("needs exactly one operator, as in `when: {gt: 0}`")
    operator, operand = next(iter(section.data.items()))
    if operator not in OPERATORS:
        raise section.error(f"unknown operator {operator!r}; {did_you_mean(operator, OPERATORS)}")
    return operator, _read_operand(section, operator, operand, measurements)


def _read_operand(
    section: Section, operator: str, operand: object, measurements: Mapping[str, MeasurementSpec]
) -> Operand:
    if isinstance(operand, dict):
        other = section.section(operator)
        other.allow(("measurement",))
        return {"measurement": other.choice("measurement", measurements)}
    wanted = OPERATORS[operator].operand
    if wanted == "list":
        return _read_list(section, operator, operand)
    fits = {
        "number": is_number(operand),
        "text": isinstance(operand, str) and operand != "",
        "mask": isinstance(operand, int) and not isinstance(operand, bool),
        "true": operand is True,
        "value": isinstance(operand, str | bool) or is_number(operand),
    }
    if not fits[wanted]:
        raise section.error(f"{operator!r} needs {_OPERAND_TYPES.get(wanted, 'a value')}", operator)
    return operand  # type: ignore[return-value]  # one of Value's types, checked above


def _read_list(section: Section, operator: str, operand: object) -> tuple[Value, ...]:
    if not isinstance(operand, list) or not operand:
        raise section.error(f"{operator!r} needs a list of values", operator)
    for item in operand:
        if not isinstance(item, str | bool) and not is_number(item):
            raise section.error(f"{operator!r} needs plain values in its list", operator)
    return tuple(operand)
