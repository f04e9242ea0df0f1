"""`dx` asks the worker servers of ranks that stand still for the dumps that no file holds."""

import json
from pathlib import Path

from brctl.model.evidence_kinds import FLIGHT_RECORDER
from brctl.model.fault import FaultClass
from tests.engine.live_queries.site import StalledSite

SERVER = {"worker_socket": "/run/rank.sock", "library": "", "version": "", "ras": {"port": 28028}}
LATE_RANK = 2


def recorded(operations: int) -> bytes:
    """A dump of torch's generic recorder: all-reduces, of which the fourth is not completed."""
    entries = [
        {
            "record_id": number, "pg_id": 0, "process_group": ["0", "default"],
            "collective_seq_id": number + 1, "p2p_seq_id": 0, "is_p2p": False,
            "profiling_name": "gloo:all_reduce", "time_created_ns": 0,
            "state": "completed" if number < 3 else "scheduled",
        }
        for number in range(operations)
    ]  # fmt: skip
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2, 3]"}}
    return json.dumps({"version": "2.10", "pg_config": config, "entries": entries}).encode()


def test_dumps_that_ranks_give_when_asked_name_the_one_that_never_joined(tmp_path: Path) -> None:
    """The job is not set up to write dumps, and its stacks are all alike."""
    workers = {
        rank: {"ping": b"pong", "fr_trace_json": recorded(3 if rank == LATE_RANK else 4)}
        for rank in range(4)
    }
    (verdict, *_) = StalledSite(tmp_path, facts=SERVER, workers=workers).diagnose().verdicts
    assert (verdict.fault, verdict.nodes) == (FaultClass.HANG_MISMATCH, ("n3",))
    found = [e.kind for e in verdict.evidence if e.source == FLIGHT_RECORDER]
    assert found == ["job.flight.never-joined"]


def test_recorders_that_are_off_say_nothing(tmp_path: Path) -> None:
    """A dump without entries is of a recorder without a buffer, not of an idle rank."""
    empty = b'{"version": "2.10", "pg_config": {}, "pg_status": {}}'
    workers = {rank: {"ping": b"pong", "fr_trace_json": empty} for rank in range(4)}
    verdicts = StalledSite(tmp_path, facts=SERVER, workers=workers).diagnose().verdicts
    assert not [e for v in verdicts for e in v.evidence if e.source == FLIGHT_RECORDER]


def test_dumps_of_a_few_ranks_are_a_gap(tmp_path: Path) -> None:
    """One dump of four tells nobody apart."""
    workers = {0: {"ping": b"pong", "fr_trace_json": recorded(4)}}
    verdicts = StalledSite(tmp_path, facts=SERVER, workers=workers).diagnose().verdicts
    gaps = [gap for v in verdicts for gap in v.not_checked if gap.what == FLIGHT_RECORDER]
    assert "3 of 4 ranks have no dump: their worker servers gave none" in gaps[0].why


def test_ranks_without_a_worker_server_get_no_question(tmp_path: Path) -> None:
    """No command is sent that nobody could answer."""
    site = StalledSite(tmp_path, facts={**SERVER, "worker_socket": ""})
    site.diagnose()
    assert ("worker-server",) not in [command.asks for _, command in site.transport.commands]
