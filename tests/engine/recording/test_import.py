"""What other tools collected becomes an incident file, as far as it goes, whatever is in it."""

import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from brctl.engine.application.incident_files import diff, import_files, replay, score
from brctl.engine.application.incident_redaction import redact
from brctl.engine.recording import foreign
from brctl.engine.recording.archive import read
from brctl.model.errors import ConfigError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.view.notices.page import Page
from brctl.view.recorded.pseudonyms import Profile

XID = (
    "[ 1203.5] NVRM: Xid (PCI:0000:2a:00): 79, pid=0, GPU has fallen off the bus.\n"
    "[ 1203.6] NVRM: GPU at PCI:0000:2a:00 has fallen off the bus.\n"
)
QUIET = "[ 10.0] systemd[1]: Started Journal Service.\n"
PLANTED_LINE = "WANDB_API_KEY=planted0001abc\n"

SOS: Mapping[str, str] = {
    "sosreport-gpu07/sos_commands/kernel/dmesg": QUIET + XID,
    "sosreport-gpu07/etc/hostname": "gpu07\n",
    "sosreport-gpu07/var/log/messages": PLANTED_LINE + QUIET,
    "sosreport-gpu07/etc/passwd": "root:x:0:0\n",
}
MUST_GATHER: Mapping[str, str] = {
    "quay/namespaces/ml/pods/train-0/worker/worker/logs/current.log": "step 10 loss 2.0\n",
    "quay/nodes/gpu07/dmesg.log": QUIET + XID,
    "quay/namespaces/ml/core/events.yaml": "items: []\n",
    "quay/version": "4.18\n",
}
REPORT = (
    "Start of NVIDIA bug report log file.\nuname: Linux gpu07 5.15.0-91-generic #101-Ubuntu SMP\n"
    + XID
)

RULES = """\
apiVersion: brctl.dev/v1
kind: LogRules
rules:
  - name: site.pfs-evicted
    contains: ["pfs-client: evicted"]
    class: storage-checkpoint
    probability: 0.95
    origin: infra
    why: our file system says so
"""


def tar_of(files: Mapping[str, str | bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, text in files.items():
            raw = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    return buffer.getvalue()


def folder_of(files: Mapping[str, str], folder: Path) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def collected(kind: str, folder: Path) -> Path:
    """A collection of a tool in which gpu07 lost a GPU."""
    path = folder / f"{kind}.tar.xz"
    if kind == "sosreport":
        path.write_bytes(tar_of(SOS, "w:xz"))
    elif kind == "must-gather":
        path.write_bytes(tar_of(MUST_GATHER, "w:gz"))
    elif kind == "nvidia-bug-report":
        path = folder / "nvidia-bug-report.log.gz"
        path.write_bytes(gzip.compress(REPORT.encode()))
    else:
        return folder_of({"gpu07/kern.log": XID, "gpu08/kern.log": QUIET}, folder / "logs")
    return path


def body(page: Page) -> dict[str, object]:
    return json.loads(json.dumps(page.body))  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["sosreport", "must-gather", "nvidia-bug-report", "logs"])
def test_a_collection_is_judged_by_its_logs_and_judged_again(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "x.brctl.tar.zst"
    said = body(import_files(collected(kind, tmp_path), out, "", None))
    assert said["source"] == kind
    assert "gpu07" in str(said["hosts"])
    verdict = said["verdict"]
    assert isinstance(verdict, dict)
    assert verdict["class"] == "gpu-lost"
    assert verdict["suspects"]["nodes"] == ["gpu07"]
    assert replay(out, None).exit_code is ExitCode.OK
    assert diff(out, None).text.endswith("same")
    file = read(out)
    assert not any(b"planted0001abc" in raw for raw in file.members.values())
    assert not any("passwd" in name for name in file.members)


def test_other_rules_judge_it_otherwise_and_what_differs_is_said(tmp_path: Path) -> None:
    """The rules of a folder are used beside the shipped ones; then is what was told at import."""
    out, rules = tmp_path / "x.brctl.tar.zst", tmp_path / "site"
    folder_of({"n1/app.log": "pfs-client: evicted by oss-7\n"}, tmp_path / "logs")
    import_files(tmp_path / "logs", out, "", None)
    folder_of({"rules.d/site.yaml": RULES}, rules)
    page = diff(out, rules)
    assert page.exit_code is ExitCode.WARNING
    assert "other cause" in page.text
    assert "+ HIGH storage-checkpoint" in page.text
    assert "pfs-client: evicted by oss-7" in page.text
    assert replay(out, None).exit_code is ExitCode.OK
    with pytest.raises(UsageError, match="no such folder"):
        diff(out, tmp_path / "none")


def test_a_confirmed_cause_makes_it_a_case_of_check_incidents(tmp_path: Path) -> None:
    cases = tmp_path / "cases"
    cases.mkdir()
    source = collected("logs", tmp_path)
    import_files(source, cases / "a.brctl.tar.zst", "gpu-lost", "gpu07")
    import_files(source, cases / "b.brctl.tar.zst", "host-kernel", "gpu07")
    scores = body(score(cases, None))["scores"]
    assert isinstance(scores, dict)
    assert (scores["cases"], scores["class_right_ratio"]) == (2, 0.5)
    with pytest.raises(UsageError, match="--cause gpulost"):
        import_files(source, None, "gpulost", None)


def test_its_hosts_get_pseudonyms_in_names_of_members_too(tmp_path: Path) -> None:
    out, sent = tmp_path / "x.brctl.tar.zst", tmp_path / "y.brctl.tar.zst"
    import_files(collected("logs", tmp_path), out, "", None)
    page = redact(out, tmp_path / "home", Profile.PUBLIC, sent)
    assert page.body["verdict"] == "same"
    file = read(sent)
    assert not any("gpu07" in f"{name} {raw!r}" for name, raw in file.members.items())


def _linked() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            entry = tarfile.TarInfo("sos_commands/kernel/dmesg")
            entry.type, entry.linkname = kind, "/etc/shadow"
            archive.addfile(entry)
        entry = tarfile.TarInfo("sos_commands/kernel/dmesg")
        entry.size = len(XID)
        archive.addfile(entry, io.BytesIO(XID.encode()))
    return buffer.getvalue()


def test_links_devices_and_paths_upwards_are_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "sos.tar"
    path.write_bytes(_linked())
    page = import_files(path, tmp_path / "x.brctl.tar.zst", "", None)
    cuts = page.body["cuts"]
    assert isinstance(cuts, list)
    assert len(cuts) == 3
    assert page.exit_code is ExitCode.WARNING
    path.write_bytes(tar_of({"../sos_commands/kernel/dmesg": XID, "/var/log/messages": XID}))
    with pytest.raises(ConfigError, match="no log was found"):
        import_files(path, tmp_path / "y.brctl.tar.zst", "", None)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sos.tar", "x.brctl.tar.zst"]


def _long_header() -> bytes:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 30
    return entry.tobuf(tarfile.USTAR_FORMAT) + bytes(4096)


def _header(kind: bytes, size: int, more: Mapping[str, str] | None = None) -> bytes:
    entry = tarfile.TarInfo("sos_commands/kernel/dmesg")
    entry.type, entry.size, entry.pax_headers = kind, size, dict(more or {})
    return entry.tobuf(tarfile.PAX_FORMAT if more else tarfile.GNU_FORMAT)


def _sparse() -> bytes:
    return _header(tarfile.GNUTYPE_SPARSE, 1 << 60) + bytes(4096)


def _chained() -> bytes:
    return (_header(tarfile.GNUTYPE_LONGNAME, 5) + b"name\0".ljust(512, b"\0")) * 3000


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (_long_header(), "a header of 1073741824 bytes"),
        (_sparse(), "a sparse member"),
        (_chained(), "its headers nest"),
        (_header(tarfile.REGTYPE, 1 << 60) + bytes(4096), "ends before a member does"),
        (b"", "no log was found"),
        (bytes(5000), "no log was found"),
    ],
    ids=["long header", "sparse", "chained", "endless", "empty", "zeros"],
)
def test_a_hostile_collection_is_refused_in_one_line(raw: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.tar"
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=said) as refused:
        import_files(path, tmp_path / "x", "", None)
    assert "\n" not in str(refused.value)


def test_a_member_that_says_it_is_sparse_is_left_out(tmp_path: Path) -> None:
    """In the headers of another format, too; its length is whatever it likes."""
    says = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 60)}
    path = tmp_path / "sos.tar"
    path.write_bytes(_header(tarfile.REGTYPE, 1, says) + b"x".ljust(512, b"\0") + tar_of(SOS))
    page = import_files(path, tmp_path / "x", "", None)
    assert "no plain file" in str(page.body["cuts"])
    assert page.exit_code is ExitCode.WARNING


def test_of_a_log_without_an_end_the_rest_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "READ_BYTES", 100)
    folder_of({"gpu07/kern.log": XID, "gpu08/kern.log": "x\n" * 100}, tmp_path / "l")
    with pytest.raises(ConfigError, match="no log was found"):
        import_files(tmp_path / "l", tmp_path / "x", "", None)


@pytest.mark.parametrize(
    "raw", [tar_of(SOS)[:1200], lzma.compress(tar_of(SOS))[:-60]], ids=["tar", "xz"]
)
def test_of_a_truncated_collection_is_read_what_there_is(raw: bytes, tmp_path: Path) -> None:
    """And it is said: what is missing may have told something else."""
    path = tmp_path / "sos.tar"
    path.write_bytes(raw)
    page = import_files(path, tmp_path / "x", "", None)
    assert page.exit_code is ExitCode.WARNING
    assert "truncated" in str(page.body["cuts"])


def test_a_big_log_keeps_its_beginning_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "HEAD_BYTES", 100)
    monkeypatch.setattr(foreign, "FILE_BYTES", 400)
    text = "begin\n" + "middle\n" * 100 + XID
    folder_of({"gpu07/kern.log": text}, tmp_path / "l")
    page = import_files(tmp_path / "l", tmp_path / "x", "", None)
    (log,) = (raw for name, raw in read(tmp_path / "x").members.items() if name.startswith("logs/"))
    assert log.startswith(b"begin")
    assert XID.encode() in log
    assert f"{len(text) - 400} bytes in its middle were left out" in str(page.body["cuts"])
