"""Ask a tool of the site who is there; what it last said well is kept for when it cannot."""

import hashlib
import json
import subprocess  # noqa: TID251 - a source is asked on this machine, not through the fan-out
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from brctl.inventory.facts import InventorySource, NodeFacts
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.programs.output import hear
from brctl.model.errors import UnavailableError
from brctl.model.units import rfc3339

TIMEOUT_S = 20.0
OUTPUT_LIMIT_BYTES = 64 << 20

Moments = tuple[float, float]
"""Two moments of the wall clock, in seconds since 1970."""


def ask_tool(argv: Sequence[str]) -> bytes:
    """What a program prints, run without a shell.

    Raises:
        UnavailableError: It is missing, fails, takes too long or prints too much.
    """
    name = argv[0]
    try:
        with subprocess.Popen(  # noqa: S603 - fixed programs, no shell
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                said = hear(process, b"", OUTPUT_LIMIT_BYTES, time.monotonic() + TIMEOUT_S)
            finally:
                process.kill()
    except FileNotFoundError as exc:
        raise UnavailableError(f"inventory: no `{name}` on this machine") from exc
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise UnavailableError(f"inventory: `{name}` gave no answer: {exc}") from exc
    if process.returncode != 0:
        error_lines = said.stderr.decode("utf-8", "replace").strip().splitlines()
        why = error_lines[-1][:200] if error_lines else f"exit {process.returncode}"
        raise UnavailableError(f"inventory: `{name}` failed: {why}")
    if said.cut:
        raise UnavailableError(f"inventory: `{name}` printed more than 64 MiB")
    return said.stdout


def with_last_good(
    read: Callable[[], InventorySource], key: str, folder: Path, told: Moments | None = None
) -> InventorySource:
    """What a source says now, or, when it cannot, what it last said, marked as such.

    A scheduler that is down must not become an empty fleet. What it told between two moments is not
    asked again.

    Raises:
        UnavailableError: It cannot, and never did before.
    """
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    if told is not None and (said := _saved_between(path, told)) is not None:
        return said
    try:
        source = read()
    except UnavailableError as failed:
        return _last_good(path, failed)
    private_dir(folder)
    write_atomic(path, json.dumps(_to_json(source)))
    return source


def _saved_between(path: Path, told: Moments) -> InventorySource | None:
    try:
        # Between two: a file of the future, after a clock was set back, is not recent.
        is_recent = told[0] <= path.stat().st_mtime <= told[1]
        return _read_saved(path) if is_recent else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _last_good(path: Path, failed: UnavailableError) -> InventorySource:
    try:
        saved = _read_saved(path)
        at = rfc3339(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, ValueError, LookupError, TypeError):
        raise failed from None
    return replace(saved, name=f"{saved.name} as of {at} ({failed})")


def _read_saved(path: Path) -> InventorySource:
    saved = json.loads(path.read_text(encoding="utf-8"))
    nodes = tuple(NodeFacts(n, facts, origin) for n, facts, origin in saved["nodes"])
    groups = {name: tuple(members) for name, members in saved["groups"].items()}
    return InventorySource(saved["name"], nodes, groups)


def _to_json(source: InventorySource) -> Mapping[str, object]:
    return {
        "name": source.name,
        "nodes": [[node.name, dict(node.facts), node.origin] for node in source.nodes],
        "groups": source.groups,
    }
