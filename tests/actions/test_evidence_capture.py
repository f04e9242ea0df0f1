"""Evidence is kept whole and checkable, and secrets stay out of it."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from brctl.actions.evidence_capture import BUNDLE, RECORDING, EvidenceCapture
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.view.redact import HIDDEN, redact
from tests.fakes.run_context import fake_context


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("WANDB_API_KEY=0123abcd", "0123abcd"),
        ("AWS_SECRET_ACCESS_KEY: wJalrXUtn", "wJalrXUtn"),
        ('{"password": "hunter2"}', "hunter2"),
        ("--token s3cr3t --steps 10", "s3cr3t"),
        ("Authorization: Bearer eyJhbGciOi", "eyJhbGciOi"),
        ("https://me:pass1@git.example.com/x", "pass1"),
        ("hf_abcdefghijklmnopqrstuvwx", "hf_abcdefghijklmnopqrstuvwx"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ],
)
def test_a_secret_is_taken_out_and_its_name_stays(text: str, secret: str) -> None:
    """What remains says that something was there."""
    assert secret not in redact(text)
    assert HIDDEN in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:4b:00): 79, pid=1234, GPU has fallen off the bus.",
        "RANK=3 WORLD_SIZE=8 MASTER_ADDR=10.0.0.1",
        "tokens per second: 51234, tokens=7, tokenizer: bpe",
        "https://example.com/a:b@c",
    ],
)
def test_what_is_no_secret_stays_readable(text: str) -> None:
    """Evidence that is blacked out helps nobody."""
    assert redact(text) == text


async def test_the_bundle_holds_every_answer_and_its_digest(tmp_path: Path) -> None:
    """Each file matches SHA256SUMS, and the archive matches the folder."""
    context = fake_context(tmp_path)
    bound = for_run(context, JournalledRun(context, tmp_path, "R-0001"))
    done = await EvidenceCapture().apply(bound, {"nodes": ["n1", "n3"], "job": "demo"})
    folder = tmp_path / "evidence"
    assert done.out["files"] == ["SHA256SUMS", "job.json", "n1.json", "n3.json"]
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert (folder / RECORDING).read_text() == "a recording of n1, n3, demo"
    with tarfile.open(folder / BUNDLE) as archive:
        names = archive.getnames()
        member = archive.extractfile("R-0001-evidence/n3.json")
        assert member is not None
        assert json.load(member)["node"] == "n3"
    assert names == [
        f"R-0001-evidence/{n}" for n in ("SHA256SUMS", "job.json", "n1.json", "n3.json")
    ]
