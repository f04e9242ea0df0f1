"""Baselines as files: what `check learn` wrote, read back with errors that name file and line."""

from pathlib import Path

import yaml

from brctl.evidence.baseline import Baseline, Normal
from brctl.library.durable_files import write_atomic
from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.model import API_VERSION
from brctl.model.units import parse_rfc3339, rfc3339

_ENTRY_KEYS = ("kind", "group", "median", "deviation", "count")


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline whole or not at all."""
    document = {
        "apiVersion": API_VERSION,
        "kind": "Baseline",
        "learned_at": rfc3339(baseline.learned_at),
        "drivers": list(baseline.drivers),
        "entries": [
            {
                "kind": entry.kind,
                "group": entry.group,
                "median": float(entry.middle),
                "deviation": float(entry.deviation),
                "count": entry.count,
            }
            for entry in baseline.entries
        ],
    }
    # Quoted texts and plain decimals: what the strict reader takes for text and for numbers.
    text = yaml.safe_dump(document, sort_keys=False, default_style=None)
    # It lies beside the configuration, for everybody who reads that.
    write_atomic(path, text, mode=0o644)


def load_baseline(path: Path) -> Baseline:
    """Read a baseline.

    Raises:
        ConfigError: The file is not one; names file and line.
    """
    top = open_kind(load_document(path), "Baseline", ("learned_at", "drivers", "entries"))
    moment = top.value("learned_at", str)
    return Baseline(
        learned_at=top.read("learned_at", lambda: parse_rfc3339(moment)),
        drivers=top.texts("drivers"),
        entries=tuple(sorted(_read_entry(entry) for entry in top.sections("entries"))),
    )


def _read_entry(entry: Section) -> Normal:
    entry.allow(_ENTRY_KEYS)
    return Normal(
        kind=entry.value("kind", str),
        group=entry.value("group", str, ""),
        middle=entry.value("median", float),
        deviation=entry.value("deviation", float),
        count=entry.value("count", int),
    )
