"""Every look of an incident file judged again, and the logs of one that was imported."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from brctl.engine.recording.archive import IncidentFile
from brctl.engine.recording.contents import looks_in, looks_of, truth_in
from brctl.engine.recording.imported import IMPORTED, imported_verdict, judge_logs
from brctl.engine.recording.replay import NOT_RECORDED, judge_again
from brctl.model.verdict import Verdict
from brctl.view.recorded.replay import JudgedAgain
from brctl.view.recorded.scores import Truth


@dataclass(frozen=True, slots=True)
class JudgedFile:
    """A file judged again.

    Attributes:
        truths: What each look really was; None where nobody confirmed it.
    """

    digest: str
    looks: Sequence[JudgedAgain]
    truths: Sequence[Truth | None]


def judge_file(path: Path, rules: Path | None, identity: Path | None = None) -> JudgedFile:
    """A file from disk, judged again, with other site rules where a folder is given.

    Raises:
        ConfigError: It cannot be read.
    """
    file, _ = looks_in(path, identity)
    looks = judge_looks(path, file, rules)
    return JudgedFile(file.digest, looks, [truth_in(path, file, look.id) for look in looks])


def judge_looks(path: Path, file: IncidentFile, rules: Path | None = None) -> list[JudgedAgain]:
    """The looks of a file that was read, as they were told and as they are judged now."""
    judged: list[JudgedAgain] = []
    for one in looks_of(path, file):
        told = asyncio.run(judge_again(one.look, one.answers, rules))
        look = one.look
        judged.append(
            JudgedAgain(look.id, look.made_by, look.verdicts, told, _unrecorded(told))
        )  # fmt: skip
    then = imported_verdict(path, file.members)
    if then is not None:
        told_now = judge_logs(file.members, rules, then.decided_at)
        judged.append(JudgedAgain(IMPORTED, file.manifest.made_by, (then,), (told_now,)))
    return judged


def _unrecorded(verdicts: tuple[Verdict, ...]) -> tuple[str, ...]:
    gaps = {gap.what for v in verdicts for gap in v.not_checked if NOT_RECORDED in gap.why}
    return tuple(sorted(gaps))
