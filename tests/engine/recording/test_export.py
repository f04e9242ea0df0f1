"""What leaves the house: one file, the same for the same incident, without its secrets."""

import io
import json
import tarfile
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from brctl.engine.application.incident_files import record, replay
from brctl.engine.incidents import alert_store
from brctl.engine.recording import export as exporting
from brctl.engine.recording.archive import MANIFEST, SCHEMA, pack, read
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.look import encode
from brctl.engine.recording.ring import ANSWERS, LOOK, answers_in, folders
from brctl.journal.incident_notes import add_note
from brctl.model.alert import AlertIncident
from brctl.model.errors import ConfigError, UsageError
from brctl.model.exit_codes import ExitCode
from tests.fakes.recorded_site import BEGAN, RecordedSite
from tests.view.planted_secrets import PLANTED, opened

ALL = Wanted()
Files = dict[str, bytes]


def written(tmp_path: Path, fault: str = "gpu-lost", words: str = "") -> Path:
    """The file of an incident."""
    RecordedSite(tmp_path / "state", fault, words=words).diagnose()
    path = tmp_path / "incident.brctl.tar.zst"
    path.write_bytes(export(tmp_path / "state", ALL, {}))
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sound"))


def test_the_same_incident_is_the_same_file(sound: Path) -> None:
    assert export(sound.parent / "state", ALL, {}) == sound.read_bytes()


def test_a_file_is_judged_again_without_any_configuration(sound: Path) -> None:
    """The same version comes to the same, which is exit 0."""
    page = replay(sound, None)
    assert page.exit_code is ExitCode.OK
    body = json.loads(json.dumps(page.body))
    (look,) = body["looks"]
    assert look["then"] == look["now"]
    assert look["then"][0]["class"] == "gpu-lost"


def test_no_planted_secret_leaves_in_a_file_and_the_verdict_stays(tmp_path: Path) -> None:
    """Whatever a rank printed: as it is, and inside what its node answered."""
    path = written(tmp_path, words="\n".join(text for text, _ in PLANTED.values()))
    file, looks = looks_in(path)
    views = [view for raw in file.members.values() for view in opened(raw.decode(), 1)]
    for shape, (_, secret) in PLANTED.items():
        assert not any(secret in view for view in views), shape
    assert sum(file.manifest.redaction.values()) >= len(PLANTED)
    assert replay(path, None).exit_code is ExitCode.OK
    assert looks[0].look.verdicts


def test_what_the_controller_knows_to_be_secret_is_taken_out(tmp_path: Path) -> None:
    site = RecordedSite(tmp_path, "gpu-lost", words="opened with greenparrot42 at noon")
    site.diagnose()
    path = tmp_path / "x"
    path.write_bytes(export(tmp_path, ALL, {"PAGER_TOKEN": "greenparrot42", "HOME": "/root"}))
    file = read(path)
    assert not any(b"greenparrot42" in raw for raw in file.members.values())
    assert file.manifest.redaction["known"] > 0


def test_a_file_holds_no_incident_but_those_its_looks_told(tmp_path: Path) -> None:
    """Other jobs' names and what people wrote of them stay here; so do alerts of other verdicts."""
    past = RecordedSite(tmp_path, "disk-full").diagnose()
    newest = RecordedSite(tmp_path, "gpu-lost").diagnose()
    (told,), (other,) = (found.verdicts for found in (newest, past))
    add_note(tmp_path, other.id, (BEGAN, "ann", "greenparrot"))
    for name, verdict in (("I-AAAAAA", told), ("I-BBBBBB", other)):
        alert_store.save(
            tmp_path,
            AlertIncident(name, "x", "a", "s", name, BEGAN, BEGAN, verdicts=(verdict.id,)),
        )
    for wanted in (Wanted(look=newest.sweep.id), Wanted(told.id)):
        path = tmp_path / "x"
        path.write_bytes(export(tmp_path, wanted, {}))
        raw = read(path).members["incidents.json"]
        assert {found["id"] for found in json.loads(raw)} == {told.id, "I-AAAAAA"}
        assert b"greenparrot" not in raw


def test_what_is_not_recorded_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="V-9999"):
        export(tmp_path, Wanted("V-9999"), {})


def test_what_is_recorded_but_too_big_is_not_called_unrecorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = RecordedSite(tmp_path).diagnose().verdicts[0].id
    monkeypatch.setattr(exporting, "RAW_LIMIT", 100)
    with pytest.raises(UsageError, match=f"nothing of {told} can be written: look S-.* more than"):
        export(tmp_path, Wanted(told), {})


def test_a_damaged_recording_is_named_beside_what_was_written(tmp_path: Path) -> None:
    """It may have been of this verdict too: exit 1, in the text, the document and the file."""
    site = RecordedSite(tmp_path / "state")
    told = site.diagnose().verdicts[0].id
    damaged = tmp_path / "state" / "recordings" / "S-0"
    damaged.mkdir()
    (damaged / LOOK).write_text('{"id":')
    page = record(site.controller.settings, told, None, None, tmp_path / "out")
    said = "look S-0: its recording is damaged"
    assert page.exit_code is ExitCode.WARNING
    assert f"left out: {said}" in page.text
    assert page.body["cuts"] == [said] == list(read(tmp_path / "out").manifest.cuts)
    with pytest.raises(UsageError, match=said):
        export(tmp_path / "state", Wanted("V-9999"), {})


def test_an_output_that_stays_here_for_its_secret_is_said(tmp_path: Path) -> None:
    """Bytes that are no text are kept back whole."""
    RecordedSite(tmp_path).diagnose()
    (folder,) = folders(tmp_path)
    first, *others = answers_in(folder)
    kept_back = replace(first, stdout=b64encode(b"\xff greenparrot42").decode(), packed=("stdout",))
    lines = b"".join(encode(answer) + b"\n" for answer in (kept_back, *others))
    (folder / ANSWERS).write_bytes(zstandard.ZstdCompressor().compress(lines))
    path = tmp_path / "x"
    path.write_bytes(export(tmp_path, ALL, {"PAGER_TOKEN": "greenparrot42"}))
    (cut,) = read(path).manifest.cuts
    assert cut.endswith("outputs that are no text and hold a secret: 1")


def _members(path: Path) -> Files:
    raw = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        files = {entry.name: archive.extractfile(entry) for entry in archive}
    return {name: stream.read() for name, stream in files.items() if stream is not None}


def _tar(files: Files, kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, raw in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.type = len(raw), kind if name != MANIFEST else tarfile.REGTYPE
            archive.addfile(entry, io.BytesIO(raw))
    return zstandard.ZstdCompressor().compress(buffer.getvalue())


def _newer(files: Files) -> bytes:
    return _tar({**files, MANIFEST: files[MANIFEST].replace(SCHEMA.encode(), b"brctl.incident/9")})


def _altered(files: Files) -> bytes:
    return _tar({**files, "incidents.json": files["incidents.json"].replace(b"[", b"{", 1)})


def _bomb(files: Files) -> bytes:
    listed = json.loads(files[MANIFEST])
    size = 200 << 20
    listed["members"].append({"path": "bomb", "bytes": size, "sha256": "0" * 64})
    return _tar({MANIFEST: json.dumps(listed).encode(), "bomb": bytes(size)})


def _sized(files: Files, size: bytes) -> bytes:
    """A member that says this of its size, in a header whose sum is right."""
    packed = zstandard.ZstdDecompressor().decompressobj().decompress(_tar({**files, "more": b""}))
    raw = bytearray(packed)
    at = raw.rindex(b"more\0")
    raw[at + 124 : at + 136] = size.ljust(12, b"\0")
    raw[at + 148 : at + 156] = b" " * 8
    raw[at + 148 : at + 156] = b"%06o\0 " % sum(raw[at : at + 512])
    return zstandard.ZstdCompressor().compress(bytes(raw))


HOSTILE: dict[str, tuple[Callable[[Files], bytes], str]] = {
    "another version's": (_newer, "brctl.incident/9"),
    "one altered member": (_altered, "incidents.json is not what the manifest says"),
    "a path upwards": (lambda files: _tar({**files, "../x": b"1"}), r"\.\./x"),
    "an absolute path": (lambda files: _tar({**files, "/tmp/x": b"1"}), "/tmp/x"),
    "links": (lambda files: _tar(files, tarfile.SYMTYPE), "no plain file"),
    "long headers": (lambda files: _tar(files, tarfile.XHDTYPE), "no plain file"),
    "a member too many": (lambda files: _tar({**files, "more": b"1"}), "not in the manifest"),
    "a member too few": (
        lambda files: _tar({n: raw for n, raw in files.items() if n != "incidents.json"}),
        "incidents.json is missing",
    ),
    "no manifest": (lambda files: _tar({"incidents.json": b"[]"}), "begin with a manifest"),
    "a bomb": (_bomb, "unpacks to more than"),
    "a size below nothing": (lambda files: _sized(files, b"-1"), "more has no size"),
    "a huge member": (lambda files: _sized(files, b"7777777777"), "more has 1073741823 bytes"),
    "a size with a mark": (lambda files: _sized(files, b"0o1_0"), "more has no size"),
    "something else": (lambda files: b"PK\x03\x04 a zip", "not an incident"),
    "nothing": (lambda files: b"", "not an incident"),
    "no tar inside": (
        lambda files: zstandard.ZstdCompressor().compress(b"x" * 9000),
        "a header is damaged",
    ),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_file_is_refused_in_one_line(name: str, sound: Path, tmp_path: Path) -> None:
    """What it is, and why it is not read; nothing is written anywhere."""
    make, said = HOSTILE[name]
    path = tmp_path / "hostile"
    path.write_bytes(make(_members(sound)))
    with pytest.raises(ConfigError, match=said) as refused:
        looks_in(path)
    assert "\n" not in str(refused.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["hostile"]


@pytest.mark.parametrize("part", [100, 400, 4000])
def test_a_file_that_was_cut_off_is_refused(part: int, sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(sound.read_bytes()[:-part])
    with pytest.raises(ConfigError, match="not an incident that can be read"):
        looks_in(path)


def test_a_look_that_names_no_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack({}, made_by="0", looks=("S-1",), redaction={}, cuts=()))
    with pytest.raises(ConfigError, match="look 'S-1' cannot be read"):
        looks_in(path)
