"""An incident as one file: written from what was recorded, and judged again from it."""

import os
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import msgspec

from brctl import __version__
from brctl.engine.controller.clock import now
from brctl.engine.incidents.verdict_store import StoredVerdict
from brctl.engine.recording.archive import SUFFIX, packed_again, read_from
from brctl.engine.recording.budget import DEFAULT_BYTES
from brctl.engine.recording.contents import looks_in, truth_name
from brctl.engine.recording.encryption import encrypted, encrypted_suffix, is_encrypted
from brctl.engine.recording.export import Wanted, export, secrets_of, since, truth_of
from brctl.engine.recording.imported import import_collection
from brctl.engine.recording.judging import judge_file
from brctl.engine.recording.reopened import reopened
from brctl.library.config import Settings
from brctl.library.durable_files import write_atomic
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.fault import FaultClass
from brctl.model.nodeset import expand
from brctl.view.notices.page import Page
from brctl.view.recorded.diff import diff_page
from brctl.view.recorded.pseudonyms import Profile
from brctl.view.recorded.replay import import_page, record_page, replay_page
from brctl.view.recorded.scores import ScoredLook, Truth, scores_page
from brctl.view.redact import Redactor
from brctl.view.verdict import diagnosis_page


def record(
    settings: Settings,
    verdict: str | None,
    last_s: float | None,
    nodes: str | None,
    out: Path | None,
    reader: str = "",
    limit_bytes: int = DEFAULT_BYTES,
) -> Page:
    """Write the file, for one reader's eyes where one is named.

    Raises:
        UsageError: Nothing of that is recorded, or nothing says what is meant.
    """
    if verdict is None and last_s is None:
        raise UsageError("record which incident?", hint="name a verdict, or say --last 2h")
    wanted = Wanted(verdict, since(now(), last_s), frozenset(expand(nodes) if nodes else ()))
    path = out or Path(f"{verdict or 'incidents'}{SUFFIX}{encrypted_suffix(reader)}")
    return record_looks(settings.state_dir, wanted, path, reader, limit_bytes)


def record_looks(
    state_dir: Path,
    wanted: Wanted,
    path: Path,
    reader: str = "",
    limit_bytes: int = DEFAULT_BYTES,
) -> Page:
    """Write the file of some looks.

    Raises:
        UsageError: Nothing of that is recorded.
    """
    raw = export(state_dir, wanted, limit_bytes=limit_bytes)
    file = read_from(path, BytesIO(raw), len(raw))
    raw = encrypted(raw, reader) if reader else raw
    write_atomic(path, raw)
    manifest = file.manifest
    return record_page(
        str(path), len(raw), file.digest, manifest.looks, manifest.redaction, manifest.cuts
    )


def replay(path: Path, rules: Path | None, identity: Path | None = None) -> Page:
    """Judge each look of a file again.

    Raises:
        ConfigError: The file cannot be read.
        UsageError: There is no such folder of rules.
    """
    judged = judge_file(path, _folder(rules), identity)
    return replay_page(str(path), judged.digest, __version__, judged.looks)


def diff(path: Path, rules: Path | None, identity: Path | None = None) -> Page:
    """What each look of a file rests on then or now, and not both.

    Raises:
        ConfigError: The file cannot be read.
        UsageError: There is no such folder of rules.
    """
    judged = judge_file(path, _folder(rules), identity)
    return diff_page(str(path), __version__, str(rules or ""), judged.looks)


def told_again(path: Path, identity: Path | None = None) -> Page:
    """What `dx` says of the newest look of a file, asking nobody.

    Raises:
        ConfigError: The file cannot be read, or holds no look.
    """
    with reopened(path, identity) as incident:
        found = incident.newest
        page = diagnosis_page(found.verdicts, found.status, incident.nodes, found.sweep.seconds)
    return replace(page, next=(f"brctl tui --replay {path}", f"brctl incident diff {path}"))


def _folder(rules: Path | None) -> Path | None:
    if rules is not None and not rules.is_dir():
        raise UsageError(f"--rules {rules}: no such folder")
    return rules


def score(folder: Path, rules: Path | None) -> Page:
    """Judge every recorded incident of a folder beside its confirmed cause.

    Raises:
        ConfigError: A file cannot be read.
        UsageError: There is no such folder, or nothing recorded in it.
    """
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise UsageError(
            f"{folder}: no *{SUFFIX} in it", hint="brctl incident record writes such files"
        )
    scored: list[ScoredLook] = []
    unconfirmed: list[str] = []
    for path in paths:
        judged = judge_file(path, _folder(rules))
        pairs = list(zip(judged.looks, judged.truths, strict=True))
        scored += [
            ScoredLook(path.name, look.id, truth, look.now) for look, truth in pairs if truth
        ]
        if not any(judged.truths):
            unconfirmed.append(path.name)
    return scores_page(scored, unconfirmed)


def confirm_in(path: Path, stored: StoredVerdict) -> None:
    """Write what a confirmed verdict really was into a file that told it.

    Raises:
        ConfigError: The file cannot be read.
        UsageError: No look of it told that verdict, or it is a copy for somebody else.
    """
    if is_encrypted(path):
        raise _no_original(path, "encrypted")
    file, looks = looks_in(path)
    if file.manifest.profile != Profile.HOUSE:
        raise _no_original(path, f"redacted ({file.manifest.profile})")
    wanted = stored.verdict.id
    told = [one.look.id for one in looks if any(v.id == wanted for v in one.look.verdicts)]
    if not told:
        raise UsageError(f"{path}: no look in it told {wanted}", hint=f"brctl dx --replay {path}")
    truth = msgspec.json.encode(truth_of(stored, Redactor(values=secrets_of(os.environ))))
    write_atomic(path, packed_again(file, {truth_name(look): truth for look in told}))


def _no_original(path: Path, what: str) -> UsageError:
    """What is confirmed holds names and words of the house."""
    return UsageError(
        f"{path}: {what}, nothing was written into it",
        hint="confirm in the original, then `brctl incident redact` it again",
    )


def import_files(source: Path, out: Path | None, cause: str, nodes: str | None) -> Page:
    """Make an incident file of what another tool collected.

    Raises:
        ConfigError: It cannot be read, or nothing in it is a log.
        UsageError: There is no such file, or `cause` names no class.
    """
    if cause and cause not in list(FaultClass):
        raise UsageError(f"--cause {cause}: unknown; {did_you_mean(cause, list(FaultClass))}")
    truth = Truth(cause, tuple(expand(nodes) if nodes else ()), cause) if cause else None
    done = import_collection(source, secrets_of(os.environ), truth)
    target = out or Path(f"{source.name.partition('.')[0]}{SUFFIX}")
    write_atomic(target, done.raw)
    return import_page(
        str(target), len(done.raw), done.kind, done.logs, done.hosts, done.cuts, done.verdict
    )
