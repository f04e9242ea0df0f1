"""Who keeps the others waiting, from made-up dumps of known faults."""

from collections.abc import Mapping

from brctl.evidence.flight.analyse import analyse
from brctl.evidence.flight.dump import Dump, parse_dump, rank_of_name, read_dump
from brctl.model.jobs.hang import SuspectReason


def entry(
    number: int, op: str = "all_reduce", *, done: bool, group: str = "0", at: int = 1
) -> dict[str, object]:
    return {
        "record_id": number, "pg_id": int(group), "process_group": [group, "default"],
        "collective_seq_id": number, "p2p_seq_id": 0, "profiling_name": f"nccl:{op}",
        "time_created_ns": at * 10**9 + number, "input_sizes": [[4]], "input_dtypes": ["Float"],
        "state": "completed" if done else "scheduled", "retired": done, "is_p2p": False,
    }  # fmt: skip


def dump(rank: int, *entries: Mapping[str, object], ranks: str = "[0, 1, 2, 3]") -> Dump:
    config = {"0": {"name": "0", "desc": "default", "ranks": ranks}}
    return read_dump(rank, {"pg_config": config, "pg_status": {}, "entries": list(entries)})


WAITS = (entry(6, done=True), entry(7, done=False))


def test_a_rank_that_never_entered_is_suspected() -> None:
    """Three wait in number 7; the fourth completed 6 and has nothing pending."""
    found = analyse([dump(r, *WAITS) for r in (0, 1, 3)] + [dump(2, entry(6, done=True))])
    (suspect,) = found.suspects
    assert (suspect.rank, suspect.reason) == (2, SuspectReason.NEVER_JOINED)
    assert suspect.waiting == (0, 1, 3)
    assert found.waiting == (0, 1, 3)


def test_a_rank_whose_gpu_stopped_is_suspected() -> None:
    """It entered 7 and never completed it, although its peers went on to 8."""
    others = [dump(r, entry(7, done=True), entry(8, done=False)) for r in (0, 1, 3)]
    found = analyse([*others, dump(2, entry(7, done=False), entry(8, done=False))])
    assert [(s.rank, s.reason) for s in found.suspects] == [(2, SuspectReason.STALLED)]


def test_beside_a_rank_that_left_no_dump_one_that_stopped_is_not_alone_suspected() -> None:
    """Behind a cut cable: what rank 1 waits for was to come from rank 2, which nobody can ask."""
    others = [dump(r, entry(7, done=True), entry(8, done=False)) for r in (0, 3)]
    found = analyse([*others, dump(1, entry(6, done=True), entry(7, done=False))])
    reasons = {s.rank: s.reason for s in found.suspects}
    assert reasons == {1: SuspectReason.STALLED, 2: SuspectReason.NO_DUMP}


def test_where_dumps_name_no_members_a_rank_of_the_job_without_one_is_missed() -> None:
    """Gloo's leave them out: rank 1 was convicted alone while rank 2's node was cut off."""
    others = [dump(r, entry(7, done=True), entry(8, done=False), ranks="") for r in (0, 3)]
    stopped = dump(1, entry(6, done=True), entry(7, done=False), ranks="")
    found = analyse([*others, stopped], expected=(0, 1, 2, 3))
    reasons = {s.rank: s.reason for s in found.suspects}
    assert reasons == {1: SuspectReason.STALLED, 2: SuspectReason.NO_DUMP}


def test_another_operation_under_one_number_is_a_mismatch() -> None:
    """The minority is suspected."""
    odd = dump(1, entry(6, done=True), entry(7, "barrier", done=False))
    found = analyse([*(dump(r, *WAITS) for r in (0, 2, 3)), odd])
    assert [(s.rank, s.reason) for s in found.suspects] == [(1, SuspectReason.MISMATCH)]


def test_an_equal_split_suspects_both_sides() -> None:
    """With two against two nobody can say which was meant."""
    other = (entry(6, done=True), entry(7, "barrier", done=False))
    found = analyse([dump(0, *WAITS), dump(1, *WAITS), dump(2, *other), dump(3, *other)])
    assert [s.rank for s in found.suspects] == [0, 1, 2, 3]


def test_a_missing_dump_is_evidence() -> None:
    """A rank that died leaves none; the others wait for it."""
    found = analyse([dump(r, *WAITS) for r in (0, 1, 3)])
    assert [(s.rank, s.reason) for s in found.suspects] == [(2, SuspectReason.NO_DUMP)]
    assert found.notes == ("no dump of rank 2",)


def test_when_all_entered_nobody_is_blamed() -> None:
    """All ranks in one collective and none done: look at the fabric."""
    found = analyse([dump(r, *WAITS) for r in range(4)])
    assert found.suspects == ()
    assert found.common_cause


def test_a_neighbour_that_waits_itself_is_a_victim() -> None:
    """Rank 0 waits for 1 in one group, 1 waits for 2 in another: only 2 is suspected."""
    config = {
        "1": {"desc": "tp", "ranks": "[0, 1]"},
        "2": {"desc": "dp", "ranks": "[1, 2]"},
    }

    def one(rank: int, *entries: Mapping[str, object]) -> Dump:
        return read_dump(rank, {"pg_config": config, "pg_status": {}, "entries": list(entries)})

    found = analyse(
        [one(0, entry(5, done=False, group="1")), one(1, entry(9, done=False, group="2")), one(2)]
    )
    assert [s.rank for s in found.suspects] == [2]
    assert found.suspects[0].waiting == (0, 1)


def test_ranks_in_a_circle_are_a_mismatch() -> None:
    """Each entered what the other did not: the order of calls differs."""
    config = {"1": {"desc": "a", "ranks": "[0, 1]"}, "2": {"desc": "b", "ranks": "[0, 1]"}}

    def one(rank: int, group: str) -> Dump:
        rows = [entry(5, done=False, group=group)]
        return read_dump(rank, {"pg_config": config, "pg_status": {}, "entries": rows})

    found = analyse([one(0, "1"), one(1, "2")])
    assert {s.reason for s in found.suspects} == {SuspectReason.MISMATCH}
    assert [s.rank for s in found.suspects] == [0, 1]


def test_a_stale_dump_is_said() -> None:
    """A stopped rank cannot write a new one; its old file must not clear it."""
    fresh = [
        dump(r, entry(6, done=True, at=5000), entry(7, done=False, at=5000)) for r in (0, 1, 3)
    ]
    found = analyse([*fresh, dump(2, entry(6, done=True, at=1))])
    assert 2 in [s.rank for s in found.suspects]


def test_the_rank_stands_in_the_files_name() -> None:
    """PyTorch's names and ours."""
    assert rank_of_name("nccl_trace_rank_12") == 12
    assert rank_of_name("_dump_3") == 3
    assert rank_of_name("fr_2.json") == 2
    assert rank_of_name("fault_injection.log") is None


def test_json_dumps_are_read_too() -> None:
    """Gloo's recorder writes JSON without members: everyone that used group 0 belongs to it."""
    text = (
        b'{"pg_config": {}, "pg_status": {}, "entries": [{"pg_id": 0, "process_group": ["0", "x"],'
    )
    text += b' "collective_seq_id": 3, "profiling_name": "gloo:all_reduce", "state": "scheduled",'
    text += b' "retired": false, "is_p2p": false, "record_id": 2}]}'
    absent = b'{"pg_config": {}, "pg_status": {}, "entries": []}'
    found = analyse([parse_dump(0, text), parse_dump(1, text), parse_dump(2, absent)])
    assert [s.rank for s in found.suspects] == [2]
