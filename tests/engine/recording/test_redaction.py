"""A file for somebody else: no name of the house in it, the same verdict, a way back at home."""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.application import incident_redaction
from brctl.engine.application.incident_files import replay
from brctl.engine.application.incident_redaction import originals, redact
from brctl.engine.recording.archive import pack, packed_again
from brctl.engine.recording.contents import looks_in
from brctl.engine.recording.export import Wanted, export
from brctl.engine.recording.look import encode
from brctl.engine.recording.look_members import answers_name
from brctl.engine.recording.names_at_home import names_held, names_path
from brctl.journal import locks
from brctl.model.errors import ConfigError, GuardError, UnavailableError
from brctl.model.exit_codes import ExitCode
from brctl.view.notices.page import Page
from brctl.view.recorded.pseudonyms import Profile
from brctl.view.recorded.replay import SAME
from brctl.view.redact import Redactor
from tests.fakes.recorded_site import RecordedSite
from tests.view.planted_secrets import opened

WORDS = (
    "lost n3 (10.0.0.3, ip-10-0-0-3) of pretrain at /home/alice/run n3-ib0 "
    + b64encode(b"alice on n3 says no").decode()
    + " path=%2Fhome%2Falice%2Fx"
)
ORIGINALS = ("n3", "10.0.0.3", "10-0-0-3", "alice", "pretrain", "n1", "n4")


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Page]:
    """A vendor's copy of an incident, and what was said of it."""
    folder = tmp_path_factory.mktemp("sent")
    RecordedSite(folder / "state", "gpu-lost", words=WORDS).diagnose()
    (folder / "V.brctl.tar.zst").write_bytes(export(folder / "state", Wanted(), {}))
    out = folder / "out.brctl.tar.zst"
    page = redact(folder / "V.brctl.tar.zst", folder / "home", Profile.VENDOR, out)
    return out, page


def _words(text: str) -> set[str]:
    return set(
        text.replace("/", " ").replace('"', " ").replace("\\", " ").replace(",", " ").split()
    )


def test_no_name_is_left_packed_or_plain_and_the_verdict_is_the_same(
    sent: tuple[Path, Page],
) -> None:
    path, page = sent
    file, _ = looks_in(path)
    for name, raw in file.members.items():
        for view in opened(f"{name} {raw.decode()}", 1):
            assert not _words(view) & set(ORIGINALS), name
            assert "alice" not in view
    assert page.body["verdict"] == SAME
    assert file.manifest.profile == "vendor"
    assert file.manifest.names["node"] == 4
    assert replay(path, None).exit_code is ExitCode.OK


def test_a_site_that_logs_in_as_root_can_read_its_copy(tmp_path: Path) -> None:
    """Evidence says `root` as well: where a chain begins."""
    site = RecordedSite(tmp_path / "state", "gpu-lost", user="root")
    site.diagnose()
    (tmp_path / "V.brctl.tar.zst").write_bytes(export(tmp_path / "state", Wanted(), {}))
    out = tmp_path / "out.brctl.tar.zst"
    redact(tmp_path / "V.brctl.tar.zst", tmp_path / "home", Profile.VENDOR, out)
    assert replay(out, None).exit_code is ExitCode.OK


def test_the_report_names_members_and_counts_and_prints_no_name(sent: tuple[Path, Page]) -> None:
    said = json.dumps(sent[1].body) + sent[1].text
    assert "answers.ndjson" in said
    assert not _words(said) & set(ORIGINALS)


def test_pseudonyms_are_translated_back_only_at_home(sent: tuple[Path, Page]) -> None:
    path, _ = sent
    (look,) = looks_in(path)[1]
    (sick,) = look.look.verdicts[0].nodes
    page = originals(path.parent / "home", [sick, "node-x0999"])
    assert page.body["names"] == [
        {"pseudonym": sick, "kind": "node", "name": "n3"},
        {"pseudonym": "node-x0999", "kind": None, "name": None},
    ]
    assert page.exit_code is ExitCode.WARNING
    assert originals(path.parent / "elsewhere", [sick]).exit_code is ExitCode.WARNING
    assert names_path(path.parent / "home").stat().st_mode & 0o777 == 0o600


def test_one_name_is_one_pseudonym_in_every_file_of_a_house(sent: tuple[Path, Page]) -> None:
    """A vendor sees that it is the same node again; another house gives other addresses."""
    path, _ = sent
    source, again = path.with_name("V.brctl.tar.zst"), path.with_name("again")
    redact(source, path.parent / "home", Profile.VENDOR, again)
    assert again.read_bytes() == path.read_bytes()
    redact(source, path.parent / "other", Profile.VENDOR, again)
    assert again.read_bytes() != path.read_bytes()


def test_a_file_in_which_a_name_would_be_left_is_not_written(
    sent: tuple[Path, Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever let it through: here a member that nobody renames."""
    monkeypatch.setattr(Redactor, "file", lambda _self, _name, raw: raw)
    file, _ = looks_in(sent[0].with_name("V.brctl.tar.zst"))
    members: Mapping[str, bytes] = {**file.members, "logs/n3.log": b"n3 went away"}
    path = tmp_path / "x.brctl.tar.zst"
    path.write_bytes(
        pack(members, made_by="0", looks=file.manifest.looks, redaction={}, cuts=())
    )  # fmt: skip
    with pytest.raises(GuardError, match=r"names would be left in .*; nothing was written"):
        redact(path, tmp_path, Profile.PUBLIC, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_damaged_names_are_never_replaced_by_new_ones(
    sent: tuple[Path, Page], tmp_path: Path
) -> None:
    names_path(tmp_path).write_text("{")
    with pytest.raises(ConfigError, match="names behind pseudonyms"):
        redact(sent[0], tmp_path, Profile.VENDOR, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["pseudonyms.json", "pseudonyms.lock"]


def test_names_are_opened_and_kept_by_one_process_at_a_time(
    sent: tuple[Path, Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two redactions at once would give one pseudonym to two nodes."""
    monkeypatch.setattr(locks, "LOCK_TRIES", 1)
    with (
        names_held(tmp_path),
        pytest.raises(UnavailableError, match="another `brctl incident redact`"),
    ):
        redact(sent[0], tmp_path, Profile.VENDOR, tmp_path / "out")
    assert os.listdir(tmp_path) == ["pseudonyms.lock"]
    redact(sent[0], tmp_path, Profile.VENDOR, tmp_path / "out")
    assert names_path(tmp_path).is_file()


def test_a_file_for_one_reader_is_named_so_that_he_can_open_it(
    sent: tuple[Path, Page], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of gpg is known by its name alone."""
    monkeypatch.setattr(incident_redaction, "encrypted", lambda raw, _reader: raw)
    path = tmp_path / "V.brctl.tar.zst"
    path.write_bytes(sent[0].read_bytes())
    page = redact(path, tmp_path, Profile.VENDOR, None, reader="gpg:vendor")
    assert page.body["file"] == str(tmp_path / "V-vendor.brctl.tar.zst.gpg")


def test_outputs_that_are_no_base64_though_they_say_so_are_cut(
    sent: tuple[Path, Page], tmp_path: Path
) -> None:
    file, (one,) = looks_in(sent[0])
    damaged = replace(one.answers[0], stdout="abc", stderr="\u00e9", packed=("stdout", "stderr"))
    name = answers_name(one.look.id)
    lines = [damaged, *one.answers[1:]]
    path = tmp_path / "x.brctl.tar.zst"
    path.write_bytes(packed_again(file, {name: b"".join(encode(line) + b"\n" for line in lines)}))
    out = tmp_path / "out.brctl.tar.zst"
    redact(path, tmp_path, Profile.VENDOR, out)
    copy, (again,) = looks_in(out)
    assert (again.answers[0].stdout, again.answers[0].stderr) == ("", "")
    (cut,) = copy.manifest.cuts
    assert cut.endswith("outputs that say they are base64 and are none: 2")


def test_hosts_jobs_and_people_that_only_documents_name_get_pseudonyms(
    sent: tuple[Path, Page], tmp_path: Path
) -> None:
    """A host's first part and its domain by themselves, other jobs, names that are no words."""
    file, _ = looks_in(sent[0].with_name("V.brctl.tar.zst"))
    said = {"by": "alice@corp.example.com", "owner": "Ann M\u00fcller", "job": "secretproject"}
    log = "gpu07 n3 mail.corp.example.com: secretproject of Ann M\u00fcller, alice@corp.example.com"
    members: Mapping[str, bytes] = {
        **file.members,
        "runs/R-1/inputs.json": json.dumps(said).encode(),
        "sources.json": json.dumps(
            {"kind": "logs", "hosts": ["gpu07.corp.example.com"], "paths": {}}
        ).encode(),
        "logs/gpu07/x.log": log.encode(),
    }
    path, out = tmp_path / "x.brctl.tar.zst", tmp_path / "out.brctl.tar.zst"
    path.write_bytes(
        pack(members, made_by="0", looks=file.manifest.looks, redaction={}, cuts=())
    )  # fmt: skip
    redact(path, tmp_path, Profile.PUBLIC, out)
    for name, raw in looks_in(out)[0].members.items():
        view = f"{name} {raw.decode()}"
        for original in ("gpu07", "corp.example.com", "alice", "M\u00fcller", "secretproject"):
            assert original not in view, name
