"""Who has not the key cannot write a journal that fits; who lost it is told so, and works."""

import json
import multiprocessing
import shutil
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brctl.cli.commands import play
from brctl.engine.controller.doctor_journal import journal as doctor_journal
from brctl.engine.runs.journals.verify import verify_journals
from brctl.journal.chain_key import ChainKey, key_file, own_key, own_or_new_key
from brctl.journal.code_ledger import CodeLedger
from brctl.journal.heads import head_file
from brctl.journal.store import EVENTS, Journal, digest, keyed_journal, new_run, read_journal
from brctl.library.config import load_settings
from brctl.model.errors import ConfigError
from brctl.model.runs.event import EventType
from brctl.model.runs.journal_check import JournalState
from brctl.model.sweeps.sweep import Health
from tests.cli.test_full_disk import CONFIG, INVENTORY
from tests.cli.test_run import call

AT = datetime(2026, 7, 5, 12, tzinfo=UTC)
STRANGER = ChainKey(b"x" * 32)


def write(run_dir: Path, count: int = 3, key: ChainKey | None = None) -> None:
    with closing(Journal(run_dir, key) if key else keyed_journal(run_dir)) as journal:
        for number in range(count):
            journal.append(EventType.NOTE, AT, {"text": f"line {number}"})


def state_of(state_dir: Path, run: str = "R-0001") -> JournalState:
    (check,) = verify_journals(state_dir, [run])
    return check.state


def test_a_journal_is_sound_for_whoever_has_its_key(tmp_path: Path) -> None:
    """Written by two processes of the operator."""
    run_dir = new_run(tmp_path)
    write(run_dir)
    write(run_dir)
    assert state_of(tmp_path) is JournalState.SOUND
    assert read_journal(run_dir, own_key()).damage == ()
    assert read_journal(run_dir).events[0].fields == {"text": "line 0"}


def test_the_key_is_private_lies_apart_from_the_state_and_is_never_shown(tmp_path: Path) -> None:
    run_dir = new_run(tmp_path)
    write(run_dir)
    path, key = key_file(), own_key()
    assert key is not None
    assert not path.is_relative_to(tmp_path / "runs")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert key.secret.hex() not in (run_dir / EVENTS).read_text() + repr(key) + key.id


def rechained(lines: list[bytes], key: ChainKey | None) -> bytes:
    """The lines with a chain that fits, as whoever may write the file can make it."""
    done, prev = [], ""
    for line in lines:
        data = json.loads(line) | {"prev": prev}
        own = data.pop("mac", None)
        raw = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
        if key is not None:
            raw = raw[:-1] + f',"mac":"{key.id}:{key.mac(raw)}"}}'.encode()
        elif own is not None:
            raw = raw[:-1] + f',"mac":"{own}"}}'.encode()
        done.append(raw)
        prev = digest(raw)
    return b"\n".join(done) + b"\n"


def without_macs(lines: list[bytes]) -> list[bytes]:
    return [
        json.dumps({k: v for k, v in json.loads(x).items() if k != "mac"}).encode() for x in lines
    ]


def altered(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b"line 1", b"line X") for line in lines]


FORGERIES: dict[str, tuple[Callable[[list[bytes]], bytes], JournalState]] = {
    "a word, chained anew": (lambda x: rechained(altered(x), None), JournalState.ALTERED),
    "a line less, chained anew": (lambda x: rechained([x[0], x[2]], None), JournalState.ALTERED),
    "macs taken out from the second line": (
        lambda x: rechained([x[0], *without_macs(x[1:])], None), JournalState.ALTERED,
    ),
    "macs taken out from the first line": (
        lambda x: rechained([*without_macs(x[:1]), *x[1:]], None), JournalState.ALTERED,
    ),
    "macs taken out everywhere": (
        lambda x: rechained(without_macs(altered(x)), None), JournalState.KEYLESS,
    ),
    "another's key": (lambda x: rechained(altered(x), STRANGER), JournalState.UNVERIFIED),
    "a mac that is none": (
        lambda x: b"\n".join(x).replace(b'"mac":"', b'"mac":"0') + b"\n", JournalState.ALTERED,
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
def test_no_forgery_without_the_key_is_called_sound(forgery: str, tmp_path: Path) -> None:
    """Each of them fits the chain of digests, which needs no secret."""
    run_dir = new_run(tmp_path)
    write(run_dir)
    forge, expected = FORGERIES[forgery]
    path = run_dir / EVENTS
    path.write_bytes(forge(path.read_bytes().splitlines()))
    assert state_of(tmp_path) is expected


def test_a_keyless_journal_behind_a_keyed_one_is_altered(tmp_path: Path) -> None:
    """Taking out every mac hides in a state directory that never had a key, and only there."""
    first, second = new_run(tmp_path), new_run(tmp_path)
    write(first)
    write(second)
    path = second / EVENTS
    path.write_bytes(rechained(without_macs(path.read_bytes().splitlines()), None))
    assert state_of(tmp_path, "R-0002") is JournalState.ALTERED


def test_an_end_cut_off_a_journal_shows(tmp_path: Path) -> None:
    """What is left fits; how many lines there were stands beside the key and not in the state."""
    run_dir = new_run(tmp_path)
    write(run_dir)
    path = run_dir / EVENTS
    raw = path.read_bytes()
    path.write_bytes(b"".join(raw.splitlines(keepends=True)[:2]))
    (check,) = verify_journals(tmp_path, ["R-0001"])
    assert check.state is JournalState.ALTERED
    assert "its end is cut off: it has 2 lines, and had 3" in check.problems[0]
    path.write_bytes(raw)
    assert state_of(tmp_path) is JournalState.SOUND
    shutil.rmtree(tmp_path / "runs")
    write(new_run(tmp_path), count=1)
    assert state_of(tmp_path) is JournalState.SOUND, "another run of that number, after a wipe"


def test_a_head_that_cannot_be_kept_or_read_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_dir = new_run(tmp_path)
    write(run_dir)
    folder = head_file(run_dir).parent
    head_file(run_dir).write_bytes(b"[" * 100_000)
    assert state_of(tmp_path) is JournalState.SOUND
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    write(run_dir)
    assert "an end cut off the journal will not show" in caplog.text
    assert state_of(tmp_path) is JournalState.SOUND


def test_the_journal_of_one_run_does_not_pass_for_that_of_another(tmp_path: Path) -> None:
    first, second = new_run(tmp_path), new_run(tmp_path)
    write(first)
    (second / EVENTS).write_bytes((first / EVENTS).read_bytes())
    assert state_of(tmp_path, "R-0002") is JournalState.ALTERED


def test_a_journal_of_before_there_was_a_key_is_read_goes_on_and_becomes_sound(
    tmp_path: Path,
) -> None:
    """The first line with a key holds all before it."""
    run_dir = new_run(tmp_path)
    with closing(Journal(run_dir)) as journal:
        journal.append(EventType.NOTE, AT, {"text": "old"})
    assert state_of(tmp_path) is JournalState.KEYLESS
    assert len(read_journal(run_dir, own_or_new_key()).events) == 1
    write(run_dir, 1)
    assert state_of(tmp_path) is JournalState.SOUND
    path = run_dir / EVENTS
    path.write_bytes(path.read_bytes().replace(b"old", b"new"))
    assert state_of(tmp_path) is JournalState.ALTERED


@pytest.mark.parametrize("content", [None, b"", b"no key\n", b"\xff" * 4096, b"ab\ncd\n"])
def test_a_lost_or_damaged_key_is_said_and_stops_nothing(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The run goes on with a new key, and what the old one signed is unverified, not altered."""
    run_dir = new_run(tmp_path)
    write(run_dir)
    before = own_key()
    key_file().unlink()
    if content is not None:
        key_file().write_bytes(content)
    (check,) = verify_journals(tmp_path)
    assert check.state is JournalState.UNVERIFIED
    assert "there is no key in" in check.problems[0]
    write(run_dir)
    assert own_key() not in (None, before)
    (check,) = verify_journals(tmp_path)
    assert check.state is JournalState.UNVERIFIED
    assert str(key_file()) in check.problems[0]
    assert len(read_journal(run_dir, own_key()).events) == 6
    assert ("set aside" in caplog.text) is (content is not None)


def test_where_no_key_can_be_kept_work_goes_on_and_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A repair at night does not wait for a file; later nobody takes its lines for ours."""
    run_dir, ledger = new_run(tmp_path), CodeLedger(tmp_path / "code" / "here" / "demo")
    write(run_dir)
    ledger.record("r1", "d" * 64, urgent=False, why="x", by="ann", at=AT)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BRCTL_JOURNAL_KEY", str(tmp_path / "file" / "key"))
    write(run_dir)
    ledger.record("r2", "e" * 64, urgent=False, why="x", by="ann", at=AT)
    assert "the journal is written without a key" in caplog.text
    monkeypatch.delenv("BRCTL_JOURNAL_KEY")
    assert [change.version for change in ledger.read().changes] == ["r1", "r2"]
    assert {check.state for check in verify_journals(tmp_path)} == {JournalState.ALTERED}


def test_an_altered_ledger_of_code_is_found_and_refused(tmp_path: Path) -> None:
    """Also one whose chain of digests fits."""
    folder = tmp_path / "code" / "here" / "demo"
    ledger = CodeLedger(folder)
    ledger.record("r1", "d" * 64, urgent=False, why="first", by="ann", at=AT)
    path = folder / EVENTS
    path.write_bytes(rechained([path.read_bytes().strip().replace(b"first", b"other")], None))
    with pytest.raises(ConfigError, match="was altered"):
        ledger.read()
    (check,) = verify_journals(tmp_path)
    assert (check.name, check.state) == ("code/here/demo", JournalState.ALTERED)


def _make(home: str, answers: "multiprocessing.SimpleQueue[str]") -> None:
    key = own_or_new_key({"HOME": home})
    answers.put(key.id if key else "")


def test_processes_that_make_the_first_key_at_once_make_one(tmp_path: Path) -> None:
    """Else the journal of one of them could not be verified ever after."""
    spawn = multiprocessing.get_context("fork")
    answers = spawn.SimpleQueue()
    processes = [spawn.Process(target=_make, args=(str(tmp_path), answers)) for _ in range(8)]
    for process in processes:
        process.start()
    ids = {answers.get() for _ in processes}
    for process in processes:
        process.join()
    assert len(ids) == 1
    assert "" not in ids
    assert [p.name for p in key_file({"HOME": str(tmp_path)}).parent.iterdir()] == ["journal.key"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "inventory.yaml").write_text(INVENTORY)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path / "config.yaml"


def test_play_verify_and_doctor_name_the_run_and_the_line(config: Path) -> None:
    """Exit 0 while all fit; 2, with file and line, once one does not; 64 for a run that is not."""
    state_dir = config.parent / "state"
    assert call(play, config, "verify")[0] == 0
    for _ in range(2):
        write(new_run(state_dir))
    assert call(play, config, "verify") == (0, "2 journals: 2 sound\n")
    path = state_dir / "runs" / "R-0002" / EVENTS
    path.write_bytes(rechained(altered(path.read_bytes().splitlines()), None))
    code, text = call(play, config, "verify")
    assert code == 2
    assert f"{path}:2: was altered" in text
    assert "2 journals: 1 sound, 1 altered" in text
    assert call(play, config, "verify", "R-0001")[0] == 0
    code, text = call(play, config, "verify", "--json")
    assert [each["state"] for each in json.loads(text)["journals"]] == ["sound", "altered"]
    (finding,) = doctor_journal(load_settings({}, config=config))
    assert finding.health is Health.CRITICAL
    assert "R-0002" in finding.text
