"""What stood around a look: the sweeps before it and the journals of the runs it led to."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from brctl.engine.incidents.timeline import runs_by_verdict
from brctl.engine.recording.look import Look
from brctl.engine.runs.run_files import APPROVALS, INPUTS, PLAN, PLAYBOOK, REQUEST, RESULT
from brctl.engine.sweeps.sweep_store import all_sweeps
from brctl.journal.chain_key import own_key
from brctl.journal.store import EVENTS, read_journal
from brctl.view.redact import Redactor

SWEEPS_BEFORE = 3
"""Sweeps of a file: counters are judged by how they grew."""

RUN_FILES = (EVENTS, PLAYBOOK, INPUTS, REQUEST, PLAN, RESULT, APPROVALS)
RUN_FILE_BYTES = 4 << 20


def sweeps_before(
    state_dir: Path, looks: Iterable[Look], redactor: Redactor
) -> Iterator[tuple[str, bytes]]:
    """The newest sweeps that began before the newest look ended, of the nodes that were asked."""
    known = tuple(looks)
    nodes = {name for look in known for name in look.nodes}
    ended_at = max(look.clock[-1] for look in known)
    before = [sweep for sweep in all_sweeps(state_dir) if sweep.started_at <= ended_at]
    for sweep in before[-SWEEPS_BEFORE:]:
        theirs = replace(sweep, nodes=tuple(n for n in sweep.nodes if n.node in nodes))
        plain = redactor.document(json.loads(msgspec.json.encode(theirs)))
        yield f"sweeps/{sweep.id}.json", msgspec.json.encode(plain)


def journals(
    state_dir: Path, looks: Iterable[Look], redactor: Redactor, cuts: list[str]
) -> tuple[Mapping[str, bytes], Mapping[str, str]]:
    """The files of each run that acted on a verdict, and how its journal stood before redaction.

    What is taken out of a line breaks the chain of digests from there on.
    """
    told = {verdict.id for look in looks for verdict in look.verdicts}
    members: dict[str, bytes] = {}
    chains: dict[str, str] = {}
    for verdict, runs in runs_by_verdict(state_dir).items():
        for run in runs if verdict in told else ():
            chains[run.name] = _chain(run.run_dir)
            members |= dict(_run_files(run.run_dir, redactor, cuts))
    return members, chains


def _chain(run_dir: Path) -> str:
    recording = read_journal(run_dir, own_key())
    stood = "damaged" if recording.damage or recording.torn else "sound"
    return f"{len(recording.events)} lines, {stood}, head {recording.tail}"


def _run_files(run_dir: Path, redactor: Redactor, cuts: list[str]) -> Iterator[tuple[str, bytes]]:
    for name in RUN_FILES:
        path = run_dir / name
        if not path.is_file():
            continue
        if path.stat().st_size > RUN_FILE_BYTES:
            cuts.append(f"{run_dir.name}/{name}: more than {RUN_FILE_BYTES} bytes")
            continue
        yield f"runs/{run_dir.name}/{name}", redactor.file(name, path.read_bytes())
