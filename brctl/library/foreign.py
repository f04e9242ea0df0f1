"""Checks that other tools brought: a program with Nagios exit codes, or a line of an NHC file.

Such a check.yaml has `foreign:` instead of measurements, evidence and a probe. Its program must be
on the nodes already; brctl installs nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from brctl.library.schema import Section
from brctl.library.shipped import node_program
from brctl.library.strict_yaml import SIZE_LIMIT_BYTES
from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.check import MeasurementSpec, Rule

_NAGIOS = "Nagios plugin guidelines: 0 ok, 1 warning, 2 critical, 3 unknown"
_NHC = "NHC: 0 is healthy, anything else is not"


@dataclass(frozen=True, slots=True)
class Codes:
    """What the exit codes of a kind of program mean; others mean that nothing was learnt."""

    meanings: Mapping[int, Weight]
    source: str


CODES: Mapping[str, Codes] = {
    "nagios": Codes({0: Weight.CLEARS, 1: Weight.HINTS, 2: Weight.CONVICTS}, _NAGIOS),
    "nhc": Codes({0: Weight.CLEARS, 1: Weight.CONVICTS}, _NHC),
}


@dataclass(frozen=True, slots=True)
class Foreign:
    """What `foreign:` becomes in a Check."""

    parameters: Mapping[str, object]
    measurements: Mapping[str, MeasurementSpec]
    rules: tuple[Rule, ...]
    probe_source: str


def read_foreign(section: Section, check: str) -> Foreign:
    """The parts of a check that its `foreign:` stands for."""
    section.allow(("command", "codes", "fault"))
    command = section.texts("command")
    if not command:
        raise section.error("'command' must name a program", "command")
    codes = CODES[section.choice("codes", CODES, "nagios")]
    fault = FaultClass(section.choice("fault", list(FaultClass)))
    return Foreign(
        parameters={
            "name": check, "command": list(command), "known_codes": sorted(codes.meanings),
        },
        measurements={
            f"{check}.code": MeasurementSpec(f"{check}.code", "exit code", codes.source),
            f"{check}.line": MeasurementSpec(f"{check}.line", "text", "its words", optional=True),
        },
        rules=tuple(_rules(check, codes, fault)),
        probe_source=node_program("_foreign.py"),
    )  # fmt: skip


def _rules(check: str, codes: Codes, fault: FaultClass) -> Iterator[Rule]:
    for code, weight in codes.meanings.items():
        say = f"{check} says {weight.value} (exit {{value}})"
        yield Rule(f"{check}.code", "eq", code, weight, fault, say, codes.source)


_LINE = re.compile(r"(?P<mask>\S+)\s*\|\|\s*(?P<check>[A-Za-z_]\w*)(?P<rest>.*)")
_SETTING = re.compile(r"\S+\s*\|\|\s*(?:export\s+)?[A-Za-z_]\w*=.*")
_CONTINUES = re.compile(r"\\\n\s*")
_FAULTS: Mapping[str, FaultClass] = {
    "check_fs": FaultClass.STORAGE_CHECKPOINT,
    "check_hw_ib": FaultClass.NETWORK_IB,
    "check_hw_eth": FaultClass.NETWORK_ETH,
    "check_hw_mem": FaultClass.NODE_FAILURE,
    "check_hw": FaultClass.NODE_FAILURE,
    "check_nvidia": FaultClass.GPU_LOST,
    "check_nv": FaultClass.GPU_LOST,
    "check_gpu": FaultClass.GPU_LOST,
    "check_dmi": FaultClass.NODE_FAILURE,
}
"""Prefixes of NHC's own check names, longest first; what is not listed is the environment."""


@dataclass(frozen=True, slots=True)
class NhcLine:
    """One `mask || check arguments` line."""

    number: int
    mask: str
    check: str
    arguments: str


def parse_nhc(text: str, path: str) -> tuple[NhcLine, ...]:
    """The checks of an NHC file.

    Raises:
        ConfigError: A line is neither comment, setting nor check; names file and line.
    """
    found = []
    joined = _CONTINUES.sub(lambda m: " " + "\0" * m[0].count("\n"), text)
    number = 0
    for raw in joined.split("\n"):
        number += 1
        line, here = raw.replace("\0", "").strip(), number
        number += raw.count("\0")
        if not line or line.startswith("#") or _SETTING.fullmatch(line):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ConfigError.at(path, here, f"not an NHC line: {line[:80]!r}")
        found.append(NhcLine(here, match["mask"], match["check"], match["rest"].strip()))
    return tuple(found)


def nhc_check_yaml(line: NhcLine, name: str, origin: str) -> str:
    """The check.yaml that wraps one line; the node's own NHC judges it (`nhc -e`)."""
    words = f"{line.check} {line.arguments}".strip()
    fault = next(
        (f for prefix, f in _FAULTS.items() if line.check.startswith(prefix)),
        FaultClass.ENVIRONMENT_MISMATCH,
    )
    why = f"Taken over from {origin}, line {line.number}, for nodes matching {line.mask}."
    return (
        "apiVersion: brctl.dev/v1\n"
        "kind: Check\n"
        f"name: {name}\n"
        f"title: {_quoted('NHC: ' + words)}\n"
        f"why: {_quoted(why)}\n"
        f"source: {_quoted(origin)}\n"
        "level: 1\n"
        "tools: [nhc]\n"
        "deadline: 40s\n"
        "profiles: [nhc]\n"
        "foreign:\n"
        f"  command: [nhc, -e, {_quoted(words)}]\n"
        "  codes: nhc\n"
        f"  fault: {fault.value}\n"
        f"cross_check: {_quoted('nhc -e ' + repr(words))}\n"
    )  # fmt: skip


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def import_nhc(path: Path, into: Path) -> tuple[Path, ...]:
    """Write one check folder per line of an NHC file below `into/nhc/`; returns the folders.

    Raises:
        ConfigError: The file cannot be read or holds something else, or a folder already exists;
            nothing was written.
    """
    try:
        text = read_whole(path, SIZE_LIMIT_BYTES).decode()
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path}: cannot be read: {exc}") from exc
    lines = parse_nhc(text, str(path))
    folders = {line: into / "nhc" / f"line{line.number:03d}_{line.check}" for line in lines}
    for folder in folders.values():
        if folder.exists():
            raise ConfigError(
                f"{folder} already exists", hint="remove it, or choose another --into"
            )
    for line, folder in folders.items():
        folder.mkdir(parents=True)
        name = f"nhc.{folder.name}"
        body = nhc_check_yaml(line, name, str(path))
        (folder / "check.yaml").write_text(body, encoding="utf-8")
    return tuple(folders.values())
