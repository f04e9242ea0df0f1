"""What travels to a node: the runner, the probes and their parameters, on one standard input."""

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from brctl.library.shipped import node_program
from brctl.model.command import Command
from brctl.model.inventory import Node
from brctl.model.root_access import RootAccess
from brctl.model.sweeps.check import Check
from brctl.sweep.cut_cache import bundle_parts

PARALLEL = 4
"""Probes at once on a node; a level-1 probe mostly waits for a driver or a file."""

START_S = 5.0
"""Room for the transfer and for starting Python, beside the probes' own deadlines."""

OUTPUT_LIMIT_BYTES = 8 << 20
"""Room for every probe's 256 KiB, escaped; more is not an answer."""

LOGIN_ONLY = RootAccess()
"""Nothing stands before what runs on nodes."""

_BOOT = (
    "import sys,zlib,json\n"
    "r=sys.stdin.buffer\n"
    "b=json.loads(zlib.decompress(r.read(int(r.readline()))))\n"
    "b['node']=json.loads(r.read())\n"
    "exec(compile(b['runner'],'runner','exec'),{'__name__':'__main__','BUNDLE':b})"
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """The part of a sweep that is the same for all nodes, compressed once.

    Attributes:
        total_s: Seconds a node may take for all probes together.
        root: Whether any probe wants to run as root.
    """

    checks: Mapping[str, Check]
    packed: bytes
    total_s: float
    root: bool

    def command(
        self,
        node: Node,
        parameters: Mapping[str, Mapping[str, object]],
        root: RootAccess = LOGIN_ONLY,
    ) -> Command:
        """The command that runs this bundle on one node; nothing of it touches the node's disk."""
        if root.single_commands:
            parameters = with_root_commands(self.checks, parameters, root.prefix)
        own = {"parameters": parameters, "torch_python": node.torch_python}
        prefix = root.prefix if self.root and not root.single_commands else ()
        return Command(
            argv=(*prefix, node.python, "-I", "-S", "-B", "-c", _BOOT),
            stdin=b"%d\n%s%s" % (len(self.packed), self.packed, json.dumps(own).encode()),
            deadline_s=self.total_s + START_S,
            output_limit_bytes=OUTPUT_LIMIT_BYTES,
            asks=tuple(self.checks),
        )


def with_root_commands(
    checks: Mapping[str, Check],
    parameters: Mapping[str, Mapping[str, object]],
    prefix: tuple[str, ...],
) -> Mapping[str, Mapping[str, object]]:
    """The parameters, with the one command that each probe may run as root."""
    commands = {name: checks[name].root_command for name in parameters}
    return {
        name: {**own, "root_command": [*prefix, *commands[name]]} if commands[name] else own
        for name, own in parameters.items()
    }


def pack_bundle(checks: Mapping[str, Check]) -> Bundle:
    """Pack the probes of these checks."""
    probes = [probe_row(check) for check in checks.values()]
    total_s = total_seconds(checks.values())
    light = [check for check in checks.values() if _is_light(check)]
    preload, pynvml = bundle_parts(
        [check.probe_source for check in light],
        [check.probe_source for check in light if "nvml" in check.needs],
    )
    content = {
        "runner": node_program("_runner.py"),
        "pynvml": pynvml,
        "preload": preload,
        "probes": probes,
        "parallel": PARALLEL,
        "total_s": total_s,
    }
    return Bundle(
        checks=checks,
        packed=zlib.compress(json.dumps(content).encode(), 6),
        total_s=total_s,
        root=any("root" in check.needs for check in checks.values()),
    )


def total_seconds(checks: Iterable[Check]) -> float:
    """How long a node may take: probes that run alone in sequence, the others in batches."""
    alone = [check.deadline_s for check in checks if _runs_alone(check)]
    shared = sorted((check.deadline_s for check in checks if not _runs_alone(check)), reverse=True)
    batches = [shared[i * PARALLEL] for i in range(math.ceil(len(shared) / PARALLEL))]
    return sum(alone) + sum(batches) + START_S


def probe_row(check: Check) -> Mapping[str, object]:
    """One probe as the runner takes it."""
    return {
        "check": check.name,
        "source": check.probe_source,
        "deadline_s": check.deadline_s,
        "torch": "torch" in check.needs,
        "alone": _runs_alone(check),
        "drop": check.level > 1 and "root" not in check.needs,
    }


def _runs_alone(check: Check) -> bool:
    """A probe that loads the machine would disturb what the others measure."""
    return check.level > 1 or check.disruptive or "torch" in check.needs


def _is_light(check: Check) -> bool:
    return "torch" not in check.needs
