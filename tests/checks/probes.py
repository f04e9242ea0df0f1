"""Load a shipped probe as a module and drive its `measure` with fakes."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from brctl.library.shipped import shipped_dir

Value = int | float | str | bool

DRIVER = """
import io, json, sys
parameters, answers = sys.stdin.read(), {}
for path in sys.argv[1:]:
    sys.stdin, sys.stdout = io.StringIO(parameters), io.StringIO()
    try:
        exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        answers[path] = [end.code, sys.stdout.getvalue()]
json.dump(answers, sys.__stdout__)
"""
"""Runs many probes in one interpreter, each with a standard input and output of its own."""


class Read(NamedTuple):
    """What a probe read: values by (name, subject), and its notes."""

    status: int
    values: Mapping[tuple[str, str], Value]
    notes: tuple[str, ...]


def probe_path(name: str) -> Path:
    return shipped_dir("checks").joinpath(*name.split("."), "probe.py")


def load_probe(name: str) -> ModuleType:
    """The probe as a module; importing it must have no effect."""
    module = ModuleType(f"probe_{name.replace('.', '_')}")
    source = probe_path(name).read_text()
    exec(compile(source, str(probe_path(name)), "exec"), module.__dict__)  # noqa: S102  our file
    return module


def read(name: str, parameters: Mapping[str, object], *library: object) -> Read:
    """Run one probe's measure in this process."""
    module = load_probe(name)
    readings = module.Readings()
    status = module.measure(readings, dict(parameters), *library) or 0
    values = {(row["name"], row["subject"]): row["value"] for row in readings.rows}
    return Read(status, values, tuple(readings.notes))
