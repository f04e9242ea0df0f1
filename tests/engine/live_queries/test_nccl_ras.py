"""`brctl nccl ras`: a person asks NCCL of one job, and a sound job only by explicit wish."""

import asyncio
import json
from pathlib import Path

import pytest

from brctl.engine.application.nccl_ras import RasRequest, ask_nccl_of
from brctl.model.errors import GuardError, UnavailableError
from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.ras import RasAnalysis
from brctl.view.job.ras import ras_page
from tests.engine.live_queries.site import StalledSite
from tests.engine.live_queries.test_dx_asks_nccl import SOUND, one_behind


def ask(site: StalledSite, request: RasRequest) -> RasAnalysis:
    return asyncio.run(ask_nccl_of(site.controller, request, lambda _line: None))


def test_a_stalled_job_is_asked_and_the_answers_are_kept(tmp_path: Path) -> None:
    """The page names the rank and its node; raw answers lie beside the stacks."""
    answer = ("answered", one_behind())
    page = ras_page(ask(StalledSite(tmp_path, [answer] * 3), RasRequest("pretrain")))
    assert (page.exit_code, page.names) == (ExitCode.CRITICAL, ("n3",))
    assert "rank 2 launched 60 of 64 (AllReduce)" in page.text
    assert json.loads(json.dumps(page.body))["standing_unequal"] == 1
    kept = sorted(path.read_bytes() for path in tmp_path.glob("stacks/pretrain/*/nccl-ras/*"))
    assert kept == [one_behind()] * 3


def test_equal_counts_are_no_word_of_health(tmp_path: Path) -> None:
    """Exit 3: NCCL counts what was launched, not what runs."""
    page = ras_page(ask(StalledSite(tmp_path, [SOUND]), RasRequest("pretrain")))
    assert page.exit_code is ExitCode.UNKNOWN
    assert "counts what was launched, not what runs" in page.text


def test_a_job_that_takes_steps_is_refused_unless_somebody_insists(tmp_path: Path) -> None:
    """Nothing is sent to it before that."""
    site = StalledSite(tmp_path, [SOUND], age_s=0.2)
    with pytest.raises(GuardError, match="takes steps"):
        ask(site, RasRequest("pretrain"))
    assert site.asked == []
    assert ask(site, RasRequest("pretrain", running=True)).communicators == 8


def test_an_old_release_needs_its_own_wish(tmp_path: Path) -> None:
    """The refusal says which key and which flag."""
    old = {"version": "2.26.5"}
    site = StalledSite(tmp_path, [SOUND], facts=old)
    with pytest.raises(UnavailableError, match="--ask-old-nccl"):
        ask(site, RasRequest("pretrain"))
    assert ask(site, RasRequest("pretrain", old_too=True)).version == "2.30.7"
