"""Verify journals against the operator's key: who altered one shows, unless he has the key too."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from brctl.journal.chain_key import ChainKey, key_file, own_key
from brctl.journal.heads import head_file, read_head
from brctl.journal.store import EVENTS, Recording, find_run, read_journal, run_dirs
from brctl.model.runs.journal_check import JournalCheck, JournalState


def verify_journals(state_dir: Path, names: Sequence[str] = ()) -> tuple[JournalCheck, ...]:
    """These runs, or every run and every ledger of a job's code.

    Raises:
        UsageError: There is no such run.
    """
    key, key_path = own_key(), key_file()
    wanted = {find_run(state_dir, name).name for name in names}
    checks: list[JournalCheck] = []
    first_keyed = ""
    for folder in run_dirs(state_dir):
        recording = read_journal(folder, key)
        if not wanted or folder.name in wanted:
            found = _check(folder.name, recording, key, key_path, first_keyed)
            checks.append(_whole(found, recording, folder))
        if not first_keyed and recording.keyless < len(recording.events):
            first_keyed = folder.name
    if not wanted:
        checks += _ledgers(state_dir / "code", key, key_path)
    return tuple(checks)


def _ledgers(code_dir: Path, key: ChainKey | None, key_path: Path) -> Iterator[JournalCheck]:
    for path in sorted(code_dir.glob(f"*/*/{EVENTS}")):
        name = str(path.parent.relative_to(code_dir.parent))
        recording = read_journal(path.parent, key)
        yield _whole(_check(name, recording, key, key_path, ""), recording, path.parent)


def _whole(check: JournalCheck, recording: Recording, folder: Path) -> JournalCheck:
    """The same, altered where the journal had more lines when it was last let go of."""
    head = read_head(folder)
    lines = len(recording.events)
    if head is None or head.first != recording.first or lines >= head.lines:
        return check
    cut = f"its end is cut off: it has {lines} lines, and had {head.lines} by {head_file(folder)}"
    return replace(check, state=JournalState.ALTERED, problems=(*check.problems, cut))


def _check(
    name: str, recording: Recording, key: ChainKey | None, key_path: Path, first_keyed: str
) -> JournalCheck:
    # A torn last line is what a crash leaves, and what a living run shows for a moment.
    damage = [*recording.damage[: -1 if recording.torn else None], *recording.stripped]
    lines = len(recording.events)
    keyless = 0 < lines == recording.keyless
    if keyless and first_keyed:
        damage.append(f"carries no key, though {first_keyed}, which is older, does")
    if damage:
        return JournalCheck(name, lines, JournalState.ALTERED, tuple(damage))
    if recording.strange_keys:
        return JournalCheck(
            name, lines, JournalState.UNVERIFIED, (_strange(recording, key, key_path),)
        )
    if keyless:
        why = "written before there was a key, or its keys were taken out"
        return JournalCheck(name, lines, JournalState.KEYLESS, (why,))
    return JournalCheck(name, lines, JournalState.SOUND)


def _strange(recording: Recording, key: ChainKey | None, key_path: Path) -> str:
    ids = ", ".join(recording.strange_keys)
    here = f"{key_path} holds {key.id}" if key else f"there is no key in {key_path}"
    return f"written with key {ids}, and {here}: a lost key, another operator's, or a forgery"
