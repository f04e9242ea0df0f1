"""An incident file for somebody else, and the way back from its pseudonyms."""

import os
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from brctl.engine.recording.archive import SUFFIX, read_from
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.encryption import encrypted, encrypted_suffix
from brctl.engine.recording.export import secrets_of
from brctl.engine.recording.judging import judge_looks
from brctl.engine.recording.names_at_home import keep_names, names_held, open_names
from brctl.engine.recording.redaction import redact_file
from brctl.library.durable_files import write_atomic
from brctl.model.verdict import Verdict
from brctl.view.notices.page import Page
from brctl.view.recorded.pseudonyms import Profile, Pseudonyms
from brctl.view.recorded.redaction import RedactionReport, names_page, redaction_page
from brctl.view.recorded.replay import SAME, JudgedAgain


def redact(
    path: Path,
    state_dir: Path,
    profile: Profile,
    out: Path | None,
    identity: Path | None = None,
    reader: str = "",
) -> Page:
    """Write the same incident with pseudonyms; the names behind them are kept at home first.

    Raises:
        ConfigError: The file cannot be read.
        GuardError: A name would be left in it.
    """
    file, looks = looks_in(path, identity)
    with names_held(state_dir):
        names = open_names(state_dir, profile)
        done = redact_file(path, file, looks, names, secrets_of(os.environ))
        keep_names(state_dir, names)
    stem = path.name.partition(".")[0]
    suffix = SUFFIX + encrypted_suffix(reader)
    target = out or path.with_name(f"{stem}-{profile.value}{suffix}")
    copy = read_from(target, BytesIO(done.raw), len(done.raw))
    verdict = _moved(judge_looks(path, file), judge_looks(target, copy), names)
    raw = encrypted(done.raw, reader) if reader else done.raw
    write_atomic(target, raw)
    return redaction_page(
        RedactionReport(
            str(target), len(raw), copy.digest, profile.value, done.taken, done.names, done.places,
            done.cuts, verdict,
        )
    )  # fmt: skip


def _moved(before: Sequence[JudgedAgain], after: Sequence[JudgedAgain], names: Pseudonyms) -> str:
    """The first change of a verdict that redaction makes; `SAME` where it makes none."""
    for one, other in zip(before, after, strict=True):
        renamed = tuple(_renamed(verdict, names) for verdict in one.now)
        change = JudgedAgain(one.id, "", renamed, other.now).headline
        if change != SAME:
            return f"look {one.id}: {change}"
    return SAME


def _renamed(verdict: Verdict, names: Pseudonyms) -> Verdict:
    suspects = (replace(s, node=names.rename(s.node)) for s in verdict.suspects)
    return replace(verdict, suspects=tuple(suspects))


def originals(state_dir: Path, pseudonyms: Sequence[str]) -> Page:
    """What pseudonyms given here stand for."""
    names = open_names(state_dir, Profile.HOUSE)
    return names_page({text: names.original(text) for text in pseudonyms})
