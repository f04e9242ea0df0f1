"""Who is different, in what: the lasting facts of nodes that should be the same.

Rule 1: only what does not move by itself is compared; words and flags do not, most numbers do.
Rule 2: more than half of at least three nodes make a majority; without one nobody is the odd one.
Rule 3: what was not asked or not answered is no difference, and is said.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from brctl.model.command import Outcome
from brctl.model.sweeps.difference import Comparison, Difference, Split
from brctl.model.sweeps.report import NodeReport, ProbeStatus, Value

QUORUM = 3
ABSENT = "absent"

_STEADY_NUMBERS = (
    "gpu.devices.expected", "gpu.devices.nvml_count", "gpu.devices.pci_count",
    "gpu.nvlink.active_count", "gpu.pcie.max_width", "gpu.pcie.max_generation", "gpu.pcie.width",
    "host.cpu.online_count", "host.cpu.present_count", "host.disk.total_bytes",
    "host.limits.locked_bytes", "host.limits.open_files", "host.limits.processes",
    "host.shm.total_bytes", "fabric.eth.gbit_per_s", "fabric.ibport.gbit_per_s",
)  # fmt: skip
_OF_ONE_NODE = (
    "job.*", "*.line", "*.problem", "*.first_wrong", "*.leftovers",
    "gpu.device.serial", "gpu.device.pci", "gpu.device.error",
)  # fmt: skip
"""Words that are each node's own: numbers of boards, log lines, sentences about what went wrong."""

Facts = Mapping[str, str]


def compare_nodes(reports: Sequence[NodeReport]) -> Comparison:
    """The nodes beside each other, in the order given."""
    answered = [report for report in reports if report.outcome is Outcome.ANSWERED]
    facts = {report.node: _facts(report) for report in answered}
    checks = {report.node: _measured(report) for report in answered}
    check_of = {name: check for report in answered for name, check in _sources(report)}
    found: list[Difference] = []
    splits: list[Split] = []
    for name, check in sorted(check_of.items()):
        values = {
            node: own.get(name, ABSENT) for node, own in facts.items() if check in checks[node]
        }
        odd, split = _odd_ones(name, values)
        found += odd
        splits += split
    named = {difference.node for difference in found}
    silent = tuple(_silent(reports, set(check_of.values()), checks))
    return Comparison(
        reference=tuple(r.node for r in answered if r.node not in named | dict(silent).keys()),
        differences=tuple(found),
        splits=tuple(splits),
        compared=tuple(sorted(check_of)),
        silent=silent,
    )


def _odd_ones(name: str, values: Mapping[str, str]) -> tuple[list[Difference], list[Split]]:
    """Those unlike the majority, or the split when there is none."""
    counts = Counter(values.values()).most_common()
    if len(counts) < 2:
        return [], []
    usual, count = counts[0]
    if len(values) < QUORUM or 2 * count <= len(values):
        parts = [(value, tuple(n for n, v in values.items() if v == value)) for value, _ in counts]
        return [], [Split(name, tuple(parts))]
    odd = [Difference(n, name, v, usual) for n, v in values.items() if v != usual]
    return odd, []


def _facts(report: NodeReport) -> Facts:
    """Each name's distinct values over the node's devices, as one text."""
    values: dict[str, set[Value]] = {}
    for each in report.measurements:
        if _is_steady(each.name, isinstance(each.value, str | bool)):
            values.setdefault(each.name, set()).add(each.value)
    return {name: ", ".join(sorted(map(_text, own))) for name, own in values.items()}


def _sources(report: NodeReport) -> Iterator[tuple[str, str]]:
    for result in report.results:
        for each in result.measurements:
            if _is_steady(each.name, isinstance(each.value, str | bool)):
                yield each.name, result.check


@lru_cache(maxsize=4096)
def _is_steady(name: str, is_word: bool) -> bool:
    if any(fnmatchcase(name, pattern) for pattern in _OF_ONE_NODE):
        return False
    return is_word or name in _STEADY_NUMBERS


def _text(value: Value) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _measured(report: NodeReport) -> frozenset[str]:
    return frozenset(r.check for r in report.results if r.status is ProbeStatus.MEASURED)


def _silent(
    reports: Sequence[NodeReport], expected: set[str], measured: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, str]]:
    for report in reports:
        if report.outcome is not Outcome.ANSWERED:
            yield report.node, report.why_silent
            continue
        missing = sorted(expected - measured[report.node])
        if missing:
            yield report.node, "; ".join(_why(check, report) for check in missing)


def _why(check: str, report: NodeReport) -> str:
    found = report.result_of(check)
    return f"{check} {found.status.value}" if found else f"{check} not asked"
