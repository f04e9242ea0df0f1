"""One sweep as a Nagios plugin's line with performance data, folded nodes below it."""

from collections.abc import Sequence

from brctl.model.evidence import Weight
from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.sweeps.sweep import Health, Sweep
from brctl.view.text import printable

_STATUS = {ExitCode.OK: "OK", ExitCode.WARNING: "WARNING", ExitCode.CRITICAL: "CRITICAL"}
_SHOWN = 3
_AGAINST = (Weight.HINTS, Weight.CONVICTS)


def nagios_exit(code: ExitCode) -> ExitCode:
    """What a plugin may exit with: everything above 3 is UNKNOWN."""
    return code if code <= ExitCode.UNKNOWN else ExitCode.UNKNOWN


def nagios_lines(sweep: Sweep, code: ExitCode, jobs: Sequence[str] = ()) -> str:
    """The plugin's output: one sentence, performance data, then who is in which state.

    Args:
        sweep: What was found on the nodes.
        code: What the plugin exits with.
        jobs: A sentence for each job in trouble; they come first.
    """
    status = _STATUS.get(code, "UNKNOWN")
    first = "; ".join([*map(_plain, jobs), _sentence(sweep)])
    lines = [f"BRCTL {status} - {first} | {_performance(sweep)}"]
    for health in (Health.CRITICAL, Health.UNKNOWN, Health.WARNING):
        nodes = [node.node for node in sweep.of(health)]
        if nodes:
            lines.append(f"{health.value}: {fold(nodes)}")
    return "\n".join(lines) + "\n"


def nagios_failure(message: str) -> str:
    """The line when there was no sweep at all."""
    return f"BRCTL UNKNOWN - {_plain(message)}\n"


def _sentence(sweep: Sweep) -> str:
    total = len(sweep.nodes)
    for health, word in ((Health.CRITICAL, "critical"), (Health.UNKNOWN, "unknown"),
                         (Health.WARNING, "warning")):  # fmt: skip
        nodes = sweep.of(health)
        if nodes:
            checks = sorted({e.source for n in nodes for e in n.evidence if e.weight in _AGAINST})
            what = f" {', '.join(checks[:_SHOWN])}" if health is not Health.UNKNOWN else ""
            return (
                f"{len(nodes)} of {total} nodes {word}: {fold(n.node for n in nodes)}{_plain(what)}"
            )
    return f"{total} nodes, {len(sweep.checks)} checks, nothing found"


def _performance(sweep: Sweep) -> str:
    total = len(sweep.nodes)
    crit, warn, unknown = (
        len(sweep.of(health)) for health in (Health.CRITICAL, Health.WARNING, Health.UNKNOWN)
    )
    return (
        f"crit={crit};;1;0;{total} warn={warn};1;;0;{total} "
        f"unknown={unknown};;;0;{total} time={sweep.seconds:.1f}s;;;0"
    )


def _plain(text: str) -> str:
    # A bar would begin the performance data.
    return printable(text, 300).replace("|", "/")
