"""A site teaches what it knows, and asks what an unknown log is like."""

from datetime import date
from pathlib import Path

import pytest

from brctl.engine.logs.classify import Classifier
from brctl.engine.logs.teaching import explain, teach
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.taught import phrase_of
from brctl.library.log_rules import (
    TAUGHT_LIMIT,
    load_log_rules,
    matches,
    signatures_with,
    write_taught_rule,
)
from brctl.model.errors import UsageError
from brctl.model.fault import FaultClass

TODAY = date(2026, 11, 22)
ORDINARY = "".join(f"12:00:{n:02d} shard reader at row {n}\n" for n in range(40))
TELLING = "12:00:41 burst buffer zorn7: drain lease withdrawn by arbiter 12\n"
LATER = "09:13:02 burst buffer zorn9: drain lease withdrawn by arbiter 4\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text(ORDINARY + TELLING)
    return path


def test_what_was_taught_is_known_of_the_next_log(log: Path, tmp_path: Path) -> None:
    """Other values, same words: the site's own rule reads the new log."""
    site = tmp_path / "site"
    lesson = teach(log, FaultClass.STORAGE_CHECKPOINT, SHIPPED, site, TODAY)
    assert (lesson.number, lesson.line) == (41, TELLING.strip())
    assert lesson.before.fault is not FaultClass.STORAGE_CHECKPOINT
    assert lesson.after.fault is FaultClass.STORAGE_CHECKPOINT
    rules = load_log_rules([site])
    assert [rule.signature for rule in rules] == [lesson.rule]
    assert lesson.rule.name in matches(LATER.strip(), rules)
    other = tmp_path / "other.log"
    other.write_text(ORDINARY + LATER)
    said = Classifier(signatures_with(rules)).classify_paths([other]).overall
    assert said.fault is FaultClass.STORAGE_CHECKPOINT


def test_a_taught_rule_is_private_and_keeps_its_line_as_example(log: Path, tmp_path: Path) -> None:
    """Logs hold names of people and paths: only the owner may read what was kept of one."""
    lesson = teach(log, FaultClass.STORAGE_CHECKPOINT, SHIPPED, tmp_path / "site", TODAY)
    assert lesson.path.stat().st_mode & 0o777 == 0o600
    assert lesson.path.parent.stat().st_mode & 0o777 == 0o700
    (rule,) = load_log_rules([tmp_path / "site"])
    assert rule.examples == (TELLING.strip(),)
    assert rule.signature.source == "taught on 2026-11-22 from job.log"


def test_a_line_can_be_pointed_at(log: Path, tmp_path: Path) -> None:
    """Who knows better than the ranking says which line shows the cause."""
    lesson = teach(log, FaultClass.DATA_LOADER, SHIPPED, tmp_path, TODAY, number=3)
    assert (lesson.number, lesson.rule.anchors) == (3, ("shard reader at row",))


def test_nothing_is_learned_where_rules_know_the_log_already(tmp_path: Path) -> None:
    """A rule beside a shipped one would only say the same twice."""
    log = tmp_path / "dmesg"
    log.write_text("NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n")
    with pytest.raises(UsageError, match="known as gpu-lost already"):
        teach(log, FaultClass.GPU_LOST, SHIPPED, tmp_path, TODAY)
    assert not (tmp_path / "rules.d").exists()


def test_nothing_is_learned_that_stronger_evidence_contradicts(tmp_path: Path) -> None:
    """A log whose class would not change says which rule decides, and leaves no file."""
    log = tmp_path / "dmesg"
    log.write_text(
        "[    5.000001] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"
        "[    9.000001] zorn lease arbiter gave up waiting\n"
    )
    with pytest.raises(UsageError, match=r"still gpu-lost .*nothing was learned"):
        teach(log, FaultClass.DISK_FULL, SHIPPED, tmp_path, TODAY, number=2)
    assert not (tmp_path / "rules.d").exists()


@pytest.mark.parametrize("text", ["1234 5678\n", "\n"])
def test_a_log_without_words_teaches_nothing(tmp_path: Path, text: str) -> None:
    """Numbers alone would match everything or nothing."""
    log = tmp_path / "log"
    log.write_text(text)
    with pytest.raises(UsageError, match="no line with words"):
        teach(log, FaultClass.DISK_FULL, SHIPPED, tmp_path, TODAY)


def test_the_number_of_taught_rules_is_bounded(log: Path, tmp_path: Path) -> None:
    """Beyond the limit somebody has to sort them; the same lesson again is no new rule."""
    lesson = teach(log, FaultClass.STORAGE_CHECKPOINT, SHIPPED, tmp_path, TODAY)
    for number in range(TAUGHT_LIMIT - 1):
        (tmp_path / "rules.d" / f"taught-x-{number}.yaml").touch()
    assert write_taught_rule(tmp_path, lesson.rule, "x") == lesson.path
    with pytest.raises(UsageError, match="500 taught rules"):
        teach(log, FaultClass.DATA_LOADER, SHIPPED, tmp_path, TODAY)


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ("2026-02-03 04:05:06 fs-client: evicted by server mds3", "fs-client: evicted by server"),
        ("rank 7: cannot map /dev/shm/psm_8812, giving up now", "giving up now"),
        ("0xdeadbeef 12", ""),
        ("error", ""),
    ],
)
def test_a_phrase_leaves_out_what_changes(line: str, phrase: str) -> None:
    """Times, numbers, paths and single words are no ground to recognise another log by."""
    assert phrase_of(line) == phrase


def test_an_unknown_line_is_shown_beside_the_rules_it_is_like(tmp_path: Path) -> None:
    """A line no rule reads shares rare words with rules for its kind of cause."""
    log = tmp_path / "log"
    log.write_text(ORDINARY + "gpu7: bus link died, device has fallen away from bus\n")
    said = explain(log, SHIPPED)
    assert said.lines[0].line.number == 41
    near = said.lines[0].near[0]
    assert near.fault is FaultClass.GPU_LOST
    assert "fallen" in near.shared
    assert 0.0 < near.alike < 1.0


def test_a_line_like_nothing_known_says_so(tmp_path: Path) -> None:
    """No rule is named where no rare word is shared."""
    log = tmp_path / "log"
    log.write_text("zzyzx qqfrob wibble\n")
    assert explain(log, SHIPPED).lines[0].near == ()


def test_a_folder_cannot_be_taught_or_explained(tmp_path: Path) -> None:
    """One log has one cause; a folder of them has many."""
    with pytest.raises(UsageError, match="no such file"):
        explain(tmp_path, SHIPPED)
