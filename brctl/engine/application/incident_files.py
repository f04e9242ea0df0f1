"""An incident as one file: written from what was recorded, and judged again from it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from brctl import __version__
from brctl.engine.controller.clock import now
from brctl.engine.recording.archive import SUFFIX, read_from
from brctl.engine.recording.budget import DEFAULT_BYTES
from brctl.engine.recording.contents import looks_in, truth_in
from brctl.engine.recording.encryption import encrypted, encrypted_suffix
from brctl.engine.recording.export import Wanted, export, since
from brctl.engine.recording.reopened import reopened
from brctl.engine.recording.replay import NOT_RECORDED, judge_again
from brctl.engine.recording.ring import RecordedLook
from brctl.library.config import Settings
from brctl.library.durable_files import write_atomic
from brctl.model.errors import UsageError
from brctl.model.nodeset import expand
from brctl.model.verdict import Verdict
from brctl.view.notices.page import Page
from brctl.view.recorded.diff import diff_page
from brctl.view.recorded.replay import JudgedAgain, record_page, replay_page
from brctl.view.recorded.scores import ScoredLook, scores_page
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
    digest, judged = _judged_file(path, rules, identity)
    return replay_page(str(path), digest, __version__, judged)


def diff(path: Path, rules: Path | None, identity: Path | None = None) -> Page:
    """What each look of a file rests on then or now, and not both.

    Raises:
        ConfigError: The file cannot be read.
        UsageError: There is no such folder of rules.
    """
    _, judged = _judged_file(path, rules, identity)
    return diff_page(str(path), __version__, str(rules or ""), judged)


def told_again(path: Path, identity: Path | None = None) -> Page:
    """What `dx` says of the newest look of a file, asking nobody.

    Raises:
        ConfigError: The file cannot be read, or holds no look.
    """
    with reopened(path, identity) as incident:
        found = incident.newest
        page = diagnosis_page(found.verdicts, found.status, incident.nodes, found.sweep.seconds)
    return replace(page, next=(f"brctl tui --replay {path}", f"brctl incident diff {path}"))


def _judged_file(
    path: Path, rules: Path | None, identity: Path | None
) -> tuple[str, Sequence[JudgedAgain]]:
    if rules is not None and not rules.is_dir():
        raise UsageError(f"--rules {rules}: no such folder")
    file, looks = looks_in(path, identity)
    return file.digest, [_judged(one, rules) for one in looks]


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
        file, looks = looks_in(path)
        truths = [(one, truth_in(path, file, one.look.id)) for one in looks]
        scored += [
            ScoredLook(path.name, one.look.id, truth, _judged(one, rules).now)
            for one, truth in truths
            if truth is not None
        ]
        if all(truth is None for _, truth in truths):
            unconfirmed.append(path.name)
    return scores_page(scored, unconfirmed)


def _judged(one: RecordedLook, rules: Path | None) -> JudgedAgain:
    now_told = asyncio.run(judge_again(one.look, one.answers, rules))
    look = one.look
    return JudgedAgain(look.id, look.made_by, look.verdicts, now_told, _unrecorded(now_told))


def _unrecorded(verdicts: tuple[Verdict, ...]) -> tuple[str, ...]:
    gaps = {gap.what for v in verdicts for gap in v.not_checked if NOT_RECORDED in gap.why}
    return tuple(sorted(gaps))
