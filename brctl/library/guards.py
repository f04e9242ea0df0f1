"""Read guards.yaml: the site's limits and approval rows, and who else may change the file."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brctl.library.guard_lines import check_guard_line, guards_in
from brctl.library.playbooks import read_policy
from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import why_untrusted
from brctl.model.runs.playbook import GuardSpec, Policy
from brctl.playbook.guards import GUARDS
from brctl.playbook.validate import check_condition

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
