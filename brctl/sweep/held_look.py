"""Looks that are held open: a program that goes on looking on a node, and the lines it prints."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from brctl.library.shipped import loading_of, node_program
from brctl.model.command import Command
from brctl.model.inventory import Node
from brctl.model.root_access import RootAccess
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult
from brctl.sweep.bundle import LOGIN_ONLY, probe_row, total_seconds, with_root_commands
from brctl.sweep.cut_cache import bundle_parts
from brctl.sweep.parse import read_line, read_result

BEAT_S = 10.0
WORD_S = 10.0
"""So often the controller says a word, whatever there is to say."""

LOST_S = 60.0
"""A program that has heard no word for so long ends: its controller is gone or frozen."""

HELD_S = 7 * 86_400.0
"""A week, then a new login: keys and programs change."""

OUTPUT_LIMIT_BYTES = 1 << 30
LINE_LIMIT_BYTES = 512 << 10

_BOOT = (
    "import sys,zlib,json\n"
    "r=sys.stdin.buffer\n"
    "w=json.loads(zlib.decompress(r.read(int(r.readline()))))\n"
    "w['node']=json.loads(r.readline())\n"
    "w['kernel_log']=w['node'].pop('kernel_log')\n"
    "exec(compile(w['program'],'watch','exec'),{'__name__':'__main__','WATCH':w})"
)


@dataclass(frozen=True)
class HeldLook:
    """Checks that are asked again and again, some more often than others.

    Attributes:
        rounds: Names of checks by seconds between two looks; the first only when the log has grown.
        unsent: Measurements that never leave the node.
    """

    checks: Mapping[str, Check]
    rounds: Mapping[float, tuple[str, ...]]
    unsent: tuple[str, ...] = ()

    @cached_property
    def packed(self) -> bytes:
        """The part that is the same for all nodes."""
        sources = [check.probe_source for check in self.checks.values()]
        nvml = [check.probe_source for check in self.checks.values() if "nvml" in check.needs]
        preload, pynvml = bundle_parts(sources, nvml)
        content = {
            "program": node_program("_watch/program.py"),
            "runner": node_program("_runner.py"),
            "rounds": [
                self._round(every_s, names, on_log=number == 0)
                for number, (every_s, names) in enumerate(self.rounds.items())
            ],
            "unsent": self.unsent,
            "preload": preload,
            "shared": loading_of(sources),
            "pynvml": pynvml,
            "beat_s": BEAT_S,
            "lost_s": LOST_S,
        }
        return zlib.compress(json.dumps(content).encode(), 6)

    def _round(self, every_s: float, names: tuple[str, ...], *, on_log: bool) -> object:
        checks = [self.checks[name] for name in names if name in self.checks]
        return {
            "every_s": every_s,
            "on_log": on_log,
            "probes": [probe_row(check) for check in checks],
            "total_s": total_seconds(checks),
        }

    def command(
        self,
        node: Node,
        parameters: Mapping[str, Mapping[str, object]],
        root: RootAccess = LOGIN_ONLY,
    ) -> Command:
        """The command that starts it; its `stdin` is what has to be sent first."""
        needs_root = any("root" in check.needs for check in self.checks.values())
        if root.single_commands:
            parameters = with_root_commands(self.checks, parameters, root.prefix)
        prefix = root.prefix if needs_root and not root.single_commands else ()
        own = {
            "parameters": parameters,
            "torch_python": node.torch_python,
            "kernel_log": node.labels.get("kernel_log", "/dev/kmsg"),
        }
        return Command(
            argv=(*prefix, node.python, "-I", "-S", "-B", "-c", _BOOT),
            stdin=b"%d\n%s%s\n" % (len(self.packed), self.packed, json.dumps(own).encode()),
            deadline_s=HELD_S,
            output_limit_bytes=OUTPUT_LIMIT_BYTES,
            asks=tuple(self.checks),
        )


@dataclass(frozen=True, slots=True)
class HeldLine:
    """One line of a node.

    Attributes:
        kind: `hello`, `beat`, `result` or `note`.
        look: Number of the look that changed something.
        looks: At a heartbeat, how often each round was done, by its seconds.
        cpu_s: At a heartbeat, CPU that the looks have cost the node.
        up_s: At a heartbeat, how long they go on.
    """

    kind: str
    check: str = ""
    result: CheckResult | None = None
    look: int = 0
    looks: Mapping[float, int] | None = None
    cpu_s: float | None = None
    up_s: float | None = None
    text: str = ""


def read_held_line(line: bytes, checks: Mapping[str, Check]) -> HeldLine | None:
    """What one line says; None for whatever else a login prints."""
    found = read_line(line)
    kind = found.get("type") if found else None
    if found is None or kind not in ("hello", "beat", "result", "note"):
        return None
    if kind == "result":
        return _result(found, checks)
    if kind == "beat":
        looks, cpu_s, up_s = found.get("looks"), found.get("cpu_s"), found.get("up_s")
        return HeldLine("beat", looks=_looks(looks), cpu_s=_number(cpu_s), up_s=_number(up_s))
    text = found.get("text", found.get("python", ""))
    return HeldLine(str(kind), text=text[:300] if isinstance(text, str) else "")


def _result(found: Mapping[str, object], checks: Mapping[str, Check]) -> HeldLine | None:
    name, look = found.get("check"), found.get("look")
    if not isinstance(name, str) or name not in checks or type(look) is not int:
        return None
    return HeldLine("result", name, read_result(found, checks[name]), look)


def _looks(value: object) -> Mapping[float, int]:
    rows = value.items() if isinstance(value, dict) and len(value) <= 16 else ()
    return {
        float(every): count
        for every, count in rows
        if every.replace(".", "", 1).isdecimal() and type(count) is int and 0 <= count < 1 << 53
    }


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


class WholeLines:
    """Whole lines of pieces as they come; one that is too long is left out whole."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._rest = bytearray()
        self._skipping = False

    def take(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece."""
        self._rest += piece
        *whole, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        if self._skipping and whole:
            whole, self._skipping = whole[1:], False
        if len(self._rest) > self._limit:
            self._rest.clear()
            self._skipping = True
        return [line for line in whole if len(line) <= self._limit]
