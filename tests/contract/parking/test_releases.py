"""A process parked in one release of the job's code starts another, and never runs old code."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import Job
from tests.contract.parking.site import N1, ParkingSite, until

RELEASED = """\
import helper, json, os, sys, time
code = [os.environ.get(n) for n in ("BRCTL_CODE_DIR", "BRCTL_CODE_VERSION")]
print(json.dumps({"pid": os.getpid(), "release": release, "helper": helper.shade, "code": code,
                  "cwd": os.getcwd(), "first": sys.path[0]}), flush=True)
time.sleep(60)
"""


def with_releases(site: ParkingSite) -> None:
    """Let the job start from release r1, and r2 stand beside it; both say who they are."""
    for name in ("r1", "r2"):
        folder = site.folder / name
        folder.mkdir()
        (folder / "train.py").write_text(f"release = {name!r}\n" + RELEASED)
        (folder / "helper.py").write_text(f"shade = {name!r}\n")
    code = JobCode(PurePosixPath(site.folder), "r1", "r1")
    site.job = replace(site.job, workdir=None, warm=(), code=code)


def at_release(job: Job, version: str) -> Job:
    assert job.code is not None
    return replace(job, code=replace(job.code, version=version))


async def test_who_waited_in_one_release_starts_another(site: ParkingSite) -> None:
    """It holds no line of the job: program, modules, directory and variables are of the new one."""
    with_releases(site)
    await site.park()
    parked = site.parked_pids()
    job = at_release(site.job, "r2")
    assert (await site.backend.start_job(job, "", "R-1")).warm == (0, 1)
    await until(lambda: (site.folder / "logs" / "rank-00001.log").stat().st_size)
    r2 = str(site.folder / "r2")
    assert site.said(1) == {
        "pid": parked[1], "release": "r2", "helper": "r2", "cwd": r2, "first": r2,
        "code": [r2, "r2"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ("imported", "r1/helper.py of the release it was parked in"),
        ("on the path", "r1 of the release it was parked in"),
        ("hidden", "has a module runpy, and it holds another"),
    ],
)
async def test_what_may_be_of_another_release_is_never_run(
    site: ParkingSite, held: str, expected: str
) -> None:
    """A module of the old code, a path to it, a name that is the new code's: that rank is cold."""
    with_releases(site)
    if held == "imported":
        site.job = replace(site.job, warm=("helper",))
    elif held == "on the path":
        site.job = replace(site.job, environment={"PYTHONPATH": "."})
    else:
        (site.folder / "r2" / "runpy.py").write_text("")
    await site.park()
    report = await site.backend.start_job(at_release(site.job, "r2"), "", "R-1")
    assert (report.started, report.warm) == ((0, 1), ())
    assert expected in report.cold[N1]
    await until(lambda: (site.folder / "logs" / "rank-00001.log").stat().st_size)
    assert (site.said(1)["release"], site.said(1)["helper"]) == ("r2", "r2")


async def test_parking_again_keeps_who_holds_nothing_of_the_old_release(site: ParkingSite) -> None:
    """The pool renews what waits after a change of code, and replaces what holds the old one."""
    with_releases(site)
    await site.park()
    before = site.parked_pids()
    site.job = at_release(site.job, "r2")
    await site.park()
    assert site.parked_pids() == before
    site.job = replace(site.job, warm=("helper",))
    await site.park()
    holding = site.parked_pids()
    site.job = at_release(site.job, "r1")
    await site.park()
    assert not set(site.parked_pids()) & set(holding)
