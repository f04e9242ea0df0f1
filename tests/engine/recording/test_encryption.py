"""Files encrypted by the real programs open with the right key, and with no other."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brctl.engine.application.incident_files import record, replay
from brctl.engine.recording import encryption
from brctl.engine.recording.archive import pack
from brctl.engine.recording.encryption import encrypted, read_any
from brctl.model.errors import ConfigError, UnavailableError, UsageError
from brctl.model.exit_codes import ExitCode
from tests.fakes.recorded_site import RecordedSite

needs_age = pytest.mark.skipif(shutil.which("age") is None, reason="age is not installed")
needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")
EMPTY = pack({"x": b"1"}, made_by="0", looks=(), redaction={}, cuts=())


def age_key(path: Path) -> str:
    """A new identity; returns whom to encrypt for."""
    subprocess.run(["age-keygen", "-o", str(path)], check=True, capture_output=True)
    line = next(line for line in path.read_text().splitlines() if "public key" in line)
    return f"age:{line.split(': ')[1]}"


@needs_age
def test_age_encrypts_what_only_its_key_opens(tmp_path: Path) -> None:
    site = RecordedSite(tmp_path / "state", "gpu-lost")
    verdict = site.diagnose().verdicts[0].id
    reader = age_key(tmp_path / "key")
    out = tmp_path / "x.age"
    assert record(site.controller.settings, verdict, None, None, out, reader).exit_code == 0
    assert replay(out, None, tmp_path / "key").exit_code is ExitCode.OK
    with pytest.raises(UsageError, match="encrypted with age"):
        replay(out, None)
    age_key(tmp_path / "other")
    with pytest.raises(ConfigError, match="age does not open it"):
        replay(out, None, tmp_path / "other")
    cut = tmp_path / "cut.age"
    cut.write_bytes(out.read_bytes()[:-20])
    with pytest.raises(ConfigError, match="age does not open it"):
        read_any(cut, tmp_path / "key")


@needs_age
def test_what_was_encrypted_is_checked_as_any_other_file(tmp_path: Path) -> None:
    reader = age_key(tmp_path / "key")
    (tmp_path / "x.age").write_bytes(encrypted(b"no archive", reader))
    with pytest.raises(ConfigError, match="not an incident that can be read"):
        read_any(tmp_path / "x.age", tmp_path / "key")


@contextmanager
def keyring() -> Iterator[str]:
    """A folder for gpg with a short name, as its sockets need; its agent ends with it."""
    with tempfile.TemporaryDirectory(prefix="g", ignore_cleanup_errors=True) as home:
        try:
            yield home
        finally:
            environ = {**os.environ, "GNUPGHOME": home}
            subprocess.run(["gpgconf", "--kill", "all"], check=False, env=environ)


@needs_gpg
def test_gpg_encrypts_what_only_its_key_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--batch", "--passphrase", "", "--quick-gen-key", "vendor@example.invalid")
    path = tmp_path / "x.gpg"
    with keyring() as vendor, keyring() as somebody:
        monkeypatch.setenv("GNUPGHOME", vendor)
        subprocess.run(["gpg", *words], check=True, capture_output=True)
        path.write_bytes(encrypted(EMPTY, "gpg:vendor@example.invalid"))
        assert read_any(path).members == {"x": b"1"}
        with monkeypatch.context() as small:
            small.setattr(encryption, "UNPACKED_LIMIT", 1 << 18)
            path.write_bytes(encrypted(bytes(1 << 18), "gpg:vendor@example.invalid"))
            with pytest.raises(ConfigError, match="not an incident that can be read"):
                read_any(path)
            path.write_bytes(encrypted(bytes(1 << 20), "gpg:vendor@example.invalid"))
            with pytest.raises(ConfigError, match="max-output"):
                read_any(path)
        monkeypatch.setenv("GNUPGHOME", somebody)
        with pytest.raises(ConfigError, match="gpg does not open it"):
            read_any(path)


@pytest.mark.parametrize("reader", ["age", "zip:me", "age:", "gpg:--output=x", "age:nobody"])
def test_a_reader_nobody_knows_is_refused(reader: str) -> None:
    if shutil.which("age") is None and reader == "age:nobody":
        pytest.skip("age is not installed")
    with pytest.raises(UsageError, match="--encrypt"):
        encrypted(EMPTY, reader)


def test_of_what_a_program_gives_no_more_is_kept_than_a_file_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is, and however long it goes on."""
    program = tmp_path / "age"
    program.write_text("#!/bin/sh\nexec head -c 3000000 /dev/zero\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(encryption, "UNPACKED_LIMIT", 1 << 20)
    (tmp_path / "x.age").write_bytes(b"age-encryption.org/v1\n")
    with pytest.raises(ConfigError, match="it decrypts to more than 1048576 bytes"):
        read_any(tmp_path / "x.age", tmp_path / "key")


def test_a_program_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UnavailableError, match="age is not installed"):
        encrypted(EMPTY, "age:age1x")
