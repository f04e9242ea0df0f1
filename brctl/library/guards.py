"""Read guards.yaml: the site's limits and approval rows, and who else may change the file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import why_untrusted
from brctl.model.errors import did_you_mean
from brctl.model.runs.playbook import GuardSpec, Need, Policy
from brctl.playbook.guards import GUARDS, Parameter, ValueType
from brctl.playbook.templates import OPENING
from brctl.playbook.validate import check_condition

POLICY_KEYS = ("when", "need", "role", "starter_counts")
_KEYS = (*GUARDS, "approval", "override")


@dataclass(frozen=True, slots=True)
class SiteGuards:
    """Every line of every guards.yaml that applies here; all of them must agree.

    Attributes:
        warnings: Files that others than root and their owner may write.
        override_groups: Unix groups that every file lets override a guard.
    """

    guards: tuple[GuardSpec, ...] = ()
    approval: tuple[tuple[Policy, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    override_groups: frozenset[str] = frozenset()


def load_guards(files: Iterable[Path]) -> SiteGuards:
    """The limits in these files.

    Raises:
        ConfigError: A file is invalid; a limit that cannot be read is never left out.
    """
    guards: list[GuardSpec] = []
    approval: list[tuple[Policy, ...]] = []
    warnings: list[str] = []
    groups: list[frozenset[str]] = []
    for path in files:
        problem = why_untrusted(path)
        if problem:
            warnings.append(f"{path}: its limits protect nobody: {problem}")
        top = open_kind(load_document(path), "Guards", _KEYS)
        for kind in GUARDS:
            guards += _lines(top, kind)
        if "approval" in top.data:
            approval.append(tuple(_policy(row) for row in top.sections("approval")))
        groups.append(_override_groups(top))
    allowed = frozenset.intersection(*groups) if groups else frozenset()
    return SiteGuards(tuple(guards), tuple(approval), tuple(warnings), allowed)


def _override_groups(top: Section) -> frozenset[str]:
    """A file that names no group allows none: the strictest file decides."""
    override = top.section("override")
    override.allow(("allow_groups",))
    return frozenset(override.texts("allow_groups", ()))


def _lines(top: Section, kind: str) -> list[GuardSpec]:
    """One guard as a mapping, or several as a list of mappings."""
    if kind not in top.data:
        return []
    if isinstance(top.data[kind], list):
        rows = top.sections(kind)
        for row in rows:
            check_guard_line(row, kind)
        return [GuardSpec(kind, dict(row.data), row.origin()) for row in rows]
    return guards_in(top, (kind,))


def _policy(row: Section) -> Policy:
    policy = read_policy(row)
    problem = check_condition(policy.when)
    if problem:
        raise row.error(problem, "when")
    return policy


def read_policy(row: Section) -> Policy:
    """One row of an approval policy, of a playbook or of the site."""
    row.allow(POLICY_KEYS)
    return Policy(
        need=Need(row.choice("need", [str(need) for need in Need])),
        when=row.value("when", str, ""),
        role=row.value("role", str, ""),
        starter_counts=row.value("starter_counts", bool, default=False),
        origin=row.origin(),
    )


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
