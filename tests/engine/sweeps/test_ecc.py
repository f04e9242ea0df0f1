"""Memory errors are shown as read, unread ones as unread, and their history only where it moved."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from brctl.engine.controller.wiring import Controller
from brctl.engine.sweeps import sweep_store
from brctl.engine.sweeps.ecc import ecc_history, read_ecc
from brctl.evidence.ecc import ecc_rows
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.command import Outcome
from brctl.model.evidence import Gap, Subject
from brctl.model.exit_codes import ExitCode
from brctl.model.inventory import Inventory, Node
from brctl.model.root_access import RootAccess
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value
from brctl.model.sweeps.sweep import Health, NodeHealth, Sweep
from brctl.view.fleet.ecc import ecc_history_page, ecc_page
from tests.fakes.transport import FakeTransport

HEALTHY: Mapping[str, Value] = {
    "gpu.device.index": 3,
    "gpu.device.serial": "165",
    "gpu.ecc.volatile_corrected": 0,
    "gpu.ecc.volatile_uncorrected": 0,
    "gpu.ecc.aggregate_uncorrected": 0,
    "gpu.remap.uncorrected": 0,
    "gpu.remap.pending": False,
    "gpu.remap.failed": False,
}
NOW = datetime(2026, 1, 10, tzinfo=UTC)


def report(**changes: Value | None) -> NodeReport:
    values = {**HEALTHY, **{name.replace("__", "."): value for name, value in changes.items()}}
    rows = tuple(Measurement(n, "gpu:GPU-3", v) for n, v in values.items() if v is not None)
    return NodeReport("n1", Outcome.ANSWERED, (CheckResult("c", ProbeStatus.MEASURED, rows),))


@pytest.mark.parametrize(
    ("changes", "action", "code"),
    [
        ({}, "", ExitCode.OK),
        ({"gpu__remap__pending": True}, "reset at next drain", ExitCode.WARNING),
        ({"gpu__ecc__volatile_uncorrected": 2}, "reset", ExitCode.CRITICAL),
        ({"gpu__remap__failed": True}, "replace", ExitCode.CRITICAL),
        ({"gpu__ecc__volatile_uncorrected": None}, "?", ExitCode.UNKNOWN),
    ],
)
def test_a_row_asks_for_what_the_guide_says(
    changes: dict[str, Value | None], action: str, code: ExitCode
) -> None:
    """Failed remap, errors, pending remap; and what was not read is never fine."""
    rows = ecc_rows(report(**changes))
    assert [row.action for row in rows] == [action]
    assert ecc_page(rows, ()).exit_code is code


def test_pending_shows_only_who_asks_for_something() -> None:
    """A healthy GPU is left out of `pending`, a silent node is not."""
    rows = ecc_rows(report())
    page = ecc_page(rows, [Gap(Subject("n2"), "gpu.ecc", "no route")], only_pending=True)
    assert page.rows == ()
    assert "not read: n2: no route" in page.text
    assert page.exit_code is ExitCode.UNKNOWN


def test_an_unread_counter_is_a_question_mark() -> None:
    """Never a zero."""
    page = ecc_page(ecc_rows(report(gpu__ecc__volatile_corrected=None)), ())
    assert "?" in page.text
    assert page.rows[0]["corrected"] is None


def _controller(tmp_path: Path) -> Controller:
    """As much of a controller as memory errors need."""
    inventory = Inventory({"n1": Node("n1", "127.0.0.1")})
    ssh = SimpleNamespace(fanout=4, root=RootAccess())
    return cast(
        Controller,
        SimpleNamespace(
            checks=load_checks([shipped_dir("checks")]),
            transport=FakeTransport(),
            inventory=inventory,
            settings=SimpleNamespace(ssh=ssh),
            state_dir=tmp_path,
            jobs={},
            now=lambda: NOW,
        ),
    )


def test_a_node_that_answers_nothing_is_named(tmp_path: Path) -> None:
    """An empty answer gives no rows and says why."""
    rows, gaps = asyncio.run(read_ecc(_controller(tmp_path), ("n1",)))
    assert rows == ()
    assert [gap.subject.node for gap in gaps] == ["n1"]


def test_history_shows_only_what_moved(tmp_path: Path) -> None:
    """Four sweeps, one change: two rows; a sweep without counters says nothing."""
    controller = _controller(tmp_path)
    for day, changes in enumerate(
        ({}, {}, {"gpu__ecc__volatile_corrected": 9}, {"gpu__ecc__volatile_corrected": None})
    ):
        observed = NodeHealth(
            "n1", Health.OK, report(**cast(dict[str, Value | None], changes)), (), ()
        )
        at = NOW + timedelta(days=day)
        sweep_store.save(tmp_path, Sweep(f"S-{at:%Y%m%d}", 1, (), at, 1.0, (observed,)))
    found = ecc_history(controller, "n1", None, NOW - timedelta(days=1))
    assert [row.corrected for _, row in found] == [0, 9]
    assert len(ecc_history_page("n1", found).rows) == 2
    assert ecc_history(controller, "n1", 5, NOW - timedelta(days=1)) == ()
    assert ecc_history_page("n1", ()).exit_code is ExitCode.UNKNOWN


def test_rows_of_one_node_come_in_the_order_of_their_index() -> None:
    """A GPU without an index comes last."""
    one = report()
    lost = replace(one, results=(
        *one.results,
        CheckResult("d", ProbeStatus.MEASURED, (Measurement("gpu.device.lost", "gpu:a", True),)),
    ))  # fmt: skip
    assert [row.index for row in ecc_rows(lost)] == [3, None]
