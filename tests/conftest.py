"""Every test starts from an empty home, and under CI a skipped tier is a failure."""

import gc
import os
import signal
from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import Scheduling

from brctl.cli import output
from brctl.fanout.processes import broker_transport
from brctl.view.notices.page import Page
from tests.fakes.documents import check_page
from tests.scheduler import EarlyScheduling
from tests.timeouts import TIMEOUT_S

_FORGOTTEN = (
    "BRCTL_JOURNAL_KEY",
    "BRCTL_CONFIG",
    "BRCTL_CONTEXT",
    "BRCTL_READONLY",
    "BRCTL_LAB_DIR",
    "NO_COLOR",
    "COLUMNS",
)
_homes = count()

# Read when torch is imported. A process whose torch has computed with threads of OpenMP must not
# fork ranks: they wait for ever for threads that are not there any more.
os.environ["OMP_NUM_THREADS"] = "1"
_DEAREST_FIRST = ("slurm", "system", "netns", "torch", "ssh", "long")

# A busy machine is no reason to fail: how long an example takes to make or to run says nothing.
settings.register_profile(
    "new examples", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples each time: a red run must be red again. `tests/check.py --deep` tries new ones.
settings.register_profile(
    "the same examples", settings.get_profile("new examples"), derandomize=True, database=None
)
settings.load_profile("the same examples")


@pytest.fixture(autouse=True)
def clean_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The developer's own configuration, state and colours stay out of the tests."""
    # No numbered folder of pytest's: to find its number, all folders of tests before are read.
    home = tmp_path_factory.getbasetemp() / "h" / str(next(_homes))
    home.mkdir(mode=0o700, parents=True)
    for name in _FORGOTTEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    # kubectl is started a thousand times and lives for a tenth of a second: further threads and
    # looks for garbage of Go's are a quarter of what each costs.
    monkeypatch.setenv("GOMAXPROCS", "1")
    monkeypatch.setenv("GOGC", "off")
    return home


@pytest.fixture(autouse=True)
def brokers_may_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going without a broker that comes up late is right, and no test here is about it."""
    monkeypatch.setattr(broker_transport, "START_S", TIMEOUT_S)


@pytest.fixture(autouse=True)
def documents_fit_their_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    """What any command writes in any test is walked; a kind without a schema fails there."""
    render = output.render

    def checked(page: Page, form: str, context: str) -> str:
        check_page(page, context)
        return render(page, form, context)

    monkeypatch.setattr(output, "render", checked)


def pytest_configure() -> None:
    """Run in the background of a script, everything would ignore the Ctrl-C that tests send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules are no garbage: looking for some among them is a third of the time to collect."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The dear tests begin first, and those that share a module's site share a worker.

    In four workers the site would be brought up four times; and a test of a minute that begins
    last is a minute in which the other workers have nothing to do. First of all plugins: xdist
    looks for groups in this hook too.
    """
    for item in items:
        if _has_site_of_module(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_cheapness)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Workers need not wait for the controller after each test."""
    return EarlyScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


def _has_site_of_module(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    manager = item.session._fixturemanager
    found = (manager.getfixturedefs(name, item) for name in item.fixturenames)
    return any(each and each[-1].scope == "module" for each in found)


def _cheapness(item: pytest.Item) -> int:
    """The place of its dearest tier; what is in none comes last."""
    tiers = [n for n, tier in enumerate(_DEAREST_FIRST) if item.get_closest_marker(tier)]
    return min(tiers, default=len(_DEAREST_FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI no file may leave itself out, as one does that imports what is not installed."""
    report = yield
    if report.outcome == "skipped" and os.environ.get("CI") == "true":
        report.outcome = "failed"
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"{collector.nodeid} left itself out, and CI allows no file to: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI only the `gpu` tier may be skipped; elsewhere a skip is named in the summary."""
    report = yield
    in_ci = os.environ.get("CI") == "true"
    if report.skipped and in_ci and item.get_closest_marker("gpu") is None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI allows that for gpu only: {reason}"
    return report
