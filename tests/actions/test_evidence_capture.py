"""Evidence is kept whole and checkable, and secrets stay out of it."""

import asyncio
import hashlib
import json
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.actions import evidence_capture
from brctl.actions.evidence_capture import BUNDLE, RECORDING, EvidenceCapture
from brctl.actions.stacks_dump import StacksDump
from brctl.engine.runs.context import JournalledRun, for_run
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.model.jobs.job import Job
from brctl.model.sweeps.sweep import NodeHealth
from brctl.view.redact import HIDDEN, redact
from tests.fakes.run_context import FakeSweeps, fake_context


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


class _HungSweeps(FakeSweeps):
    """A look at a hung job, and the packing of an old one, take longer than their step has."""

    async def recording_of(self, verdict: str) -> bytes | None:
        await asyncio.Event().wait()
        raise AssertionError(verdict)

    async def record(
        self, nodes: Sequence[str], job: Job | None
    ) -> tuple[Sequence[NodeHealth], bytes]:
        await asyncio.Event().wait()
        raise AssertionError(nodes, job)


@pytest.mark.parametrize(
    ("verdict", "of_the_job"), [({}, {"job.json"}), ({"verdict": "V-1"}, set())]
)
async def test_the_evidence_is_kept_where_the_recording_takes_too_long(
    verdict: dict[str, str], of_the_job: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suspects' answers come first, and the missing recording is said."""
    monkeypatch.setattr(evidence_capture, "RECORDED_WITHIN_S", 0.0)
    context = fake_context(tmp_path)
    assert isinstance(context.sweeps, FakeSweeps)
    hung = _HungSweeps(context.sweeps.world, context.sweeps.checkpoints)
    bound = for_run(replace(context, sweeps=hung), JournalledRun(context, tmp_path, "R-0001"))
    done = await EvidenceCapture().apply(bound, {"nodes": ["n1"], "job": "demo", **verdict})
    assert "no recording: it was not done within 0 s" in done.say
    kept = {path.name for path in (tmp_path / "evidence").iterdir()}
    assert kept == {BUNDLE, "SHA256SUMS", "n1.json"} | of_the_job


async def test_the_look_of_the_verdict_is_kept_and_the_job_is_not_asked_again(
    tmp_path: Path,
) -> None:
    """It saw the job before the run stopped it; a look beside the stop would see half of that."""
    context = fake_context(tmp_path)
    bound = for_run(context, JournalledRun(context, tmp_path, "R-0001"))
    given = {"nodes": ["n1"], "job": "demo", "verdict": "V-1"}
    done = await EvidenceCapture().apply(bound, given)
    assert (tmp_path / "evidence" / RECORDING).read_text() == "the look of V-1"
    assert done.out["files"] == ["SHA256SUMS", "n1.json"]
    assert "the look of V-1 as it was recorded" in done.say


async def test_who_gave_no_stack_in_time_is_said_not_to_be_captured(tmp_path: Path) -> None:
    """What ends with the ranks is asked for before they are stopped, and never waited for long."""
    context = fake_context(tmp_path)
    bound = for_run(context, JournalledRun(context, tmp_path, "R-0001"))
    done = await StacksDump().apply(bound, {"job": "demo", "within": "2s"})
    assert done.out["silent"] == [2]
    assert done.say == "stacks of 3 of 4 ranks; not captured: rank2: no answer"


def test_a_recording_ends_before_the_step_of_any_shipped_playbook() -> None:
    found = load_playbooks([shipped_dir("playbooks")]).values()
    capturing = [step for one in found for step in one.steps if step.verb == "evidence.capture"]
    assert capturing
    assert all(step.timeout_s > evidence_capture.RECORDED_WITHIN_S for step in capturing)
