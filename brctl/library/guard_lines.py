"""Lines of guards, in playbooks and in guards.yaml: only the parameters a guard has."""

from collections.abc import Iterable, Mapping
from math import inf

from brctl.library.schema import Section
from brctl.model.errors import did_you_mean
from brctl.model.runs.playbook import GuardSpec
from brctl.playbook.guards import GUARDS, Parameter, ValueType
from brctl.playbook.templates import OPENING


def guards_in(row: Section, kinds: Iterable[str] | None = None) -> list[GuardSpec]:
    """The guards that are keys of one mapping; all its keys unless `kinds` says which."""
    found = []
    for kind in kinds if kinds is not None else row.data:
        if kind not in GUARDS:
            raise row.error(f"unknown guard {kind!r}; {did_you_mean(kind, GUARDS)}", kind)
        parameters = row.section(kind)
        check_guard_line(parameters, kind)
        found.append(GuardSpec(kind, parameters.data, row.origin(kind)))
    return found


def check_guard_line(line: Section, kind: str) -> None:
    """Refuse parameters a guard does not have, and values they cannot take."""
    row = GUARDS[kind]
    line.allow(row.parameters)
    for key in sorted(row.required):
        line.value(key, str)
    for key, value in line.data.items():
        if not (isinstance(value, str) and OPENING in value):
            _check_parameter(line, key, row.parameters[key])


def _check_parameter(line: Section, key: str, takes: Parameter) -> None:
    if isinstance(takes, tuple):
        line.choice(key, takes)
    elif takes is ValueType.DURATION:
        line.duration_s(key)
    elif takes is ValueType.NAMES:
        if not isinstance(line.data[key], str):
            line.texts(key)
    elif takes is ValueType.NUMBER:
        number = line.value(key, float)
        most = 100 if "percent" in key else inf
        if not 0 <= number <= most:
            raise line.error(f"{key!r} must be at least 0{_up_to(most)}, not {number:g}", key)
    else:
        line.value(key, _PYTHON_TYPES[takes])


def _up_to(most: float) -> str:
    return "" if most == inf else f" and at most {most:g}"


_PYTHON_TYPES: Mapping[ValueType, type] = {ValueType.TEXT: str, ValueType.TRUTH: bool}
