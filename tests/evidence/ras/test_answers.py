"""Answers of every release of NCCL's RAS service become one kind of answer, or say why not."""

import pytest

from brctl.evidence.ras.answer import NotRasError, RasProcess, is_cut
from brctl.evidence.ras.structured import REPAIRED, read_structured_answer
from brctl.evidence.ras.text import read_text_answer
from tests.fakes.ras_reports import (
    HEALTHY,
    LAGGING_RANKS,
    ONE_OF_TWO,
    STOPPED,
    STOPPED_ERRORS,
    communicator,
    group_row,
    json_report,
    mismatch,
    missing_row,
    rank_row,
    text_report,
)


def test_the_guides_stopped_process_is_read_with_its_rank() -> None:
    """Process 3487984 on 172.16.64.213 (GPU 5) is silent, and rank 21 is missing."""
    answer = read_text_answer(STOPPED)
    assert answer.silent == (RasProcess("172.16.64.213", 3487984, (5,)),)
    assert (answer.version, answer.timeouts, answer.is_whole) == ("2.24.3", 2, True)
    (comm,) = answer.communicators
    assert (comm.name, comm.size, [m.rank for m in comm.missing]) == ("cf264af53edbe986", 32, [21])
    assert is_cut(answer), "2.24 does not say which process rank 21 is"


def test_a_process_that_was_given_up_is_dead_and_not_silent() -> None:
    """After a minute the same process stands under DEAD."""
    dead = STOPPED_ERRORS.replace(
        "INCOMPLETE\n  Missing communicator data from 1 job process", _DEAD
    )
    answer = read_text_answer(text_report("2.30.7", (group_row(0, 1, 32),), dead))
    assert answer.dead == (RasProcess("172.16.64.213", 3487984, (5,)),)
    assert answer.silent == ()


_DEAD = "DEAD\n  1 job process is considered dead (unreachable via the RAS network)"


@pytest.mark.parametrize(("operation", "read"), [("collective", ""), ("AllReduce", "AllReduce")])
def test_six_lagging_ranks_are_read_by_name(operation: str, read: str) -> None:
    """Before 2.26 all operations are counted together, later by kind."""
    (comm,) = read_text_answer(mismatch("2.26.5", 6650, operation)).communicators
    assert [(n.operation, n.count, n.ranks) for n in comm.launched] == [
        (read, 6650, 26),
        (read, 6649, 6),
    ]
    named = {m.rank: m.process.pid for m in comm.launched[1].listed if m.process}
    assert named == LAGGING_RANKS


def test_a_single_rank_stands_in_the_line_of_its_count_state_or_error() -> None:
    """Newer releases write one rank's count, state and error into one line."""
    errors = """#0-0 (0000000000abc123) ERROR
  Asynchronous error on 1 rank
  Rank 3 reported System error -- GPU 3 managed by process 33 on node 10.0.0.1

"""
    warnings = """#0-0 (0000000000abc123) MISMATCH
  Communicator ranks have different status
  7 ranks have status RUNNING
  Rank 3 has status ABORT -- GPU 3 (NVML 5) managed by process 33 on node 10.0.0.1
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 37 on node fe80::1
  Communicator ranks have different Broadcast operation counts
  7 ranks have launched up to operation 4
  Rank 7 has not launched any operations -- [process information not found]

"""
    row = group_row(0, 1, 8, errors="ERROR,MISMATCH")
    (comm,) = read_text_answer(text_report("2.30.7", (row,), errors, warnings)).communicators
    assert comm.name == "abc123"
    assert [(f.error, f.ranks, f.listed[0].rank) for f in comm.failed] == [("System error", 1, 3)]
    states = {s.state: (s.ranks, [m.process for m in s.listed]) for s in comm.states}
    assert states == {"RUNNING": (7, []), "ABORT": (1, [RasProcess("10.0.0.1", 33, (5,))])}
    alone = [(n.operation, n.count, n.listed[0].process) for n in comm.launched if n.ranks == 1]
    assert alone == [("AllReduce", 60, RasProcess("fe80::1", 37, (3,))), ("Broadcast", 0, None)]


def test_what_2_24_called_unknown_is_no_communicator() -> None:
    """Ranks that are no members any more were UNKNOWN, later NOCOMM."""
    warnings = """#0-0 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  26 ranks have status UNKNOWN
  6 ranks have status RUNNING
"""
    row = group_row(0, 1, 32, state="FINALIZE", errors="MISMATCH")
    (comm,) = read_text_answer(text_report("2.24.3", (row,), warnings=warnings)).communicators
    assert [(s.state, s.ranks) for s in comm.states] == [("NOCOMM", 26), ("RUNNING", 6)]


def test_the_table_tells_how_many_communicators_there_are_and_which_are_being_set_up() -> None:
    """Sizes of communicators come from the row their group has."""
    rows = (group_row(0, 7, 4), group_row(1, 1, 4, state="INIT"))
    answer = read_text_answer(text_report("2.27.3", rows))
    assert (answer.total, answer.ranks, answer.in_setup, answer.communicators) == (8, 4, 1, ())
    assert not is_cut(answer)


def test_a_text_that_breaks_off_is_not_whole() -> None:
    """The last section begins with Warnings; without it something is missing."""
    whole = text_report("2.30.7", HEALTHY)
    assert read_text_answer(whole).is_whole
    assert not read_text_answer(whole[: whole.index(b"Warnings")]).is_whole


def test_the_guides_json_of_2_29_1_is_read() -> None:
    """Two ranks, one of them missing: silent, not dead."""
    answer = read_structured_answer(ONE_OF_TWO)
    (comm,) = answer.communicators
    assert (comm.name, comm.size, comm.missing_ranks) == ("ae94423cfbb2ef4a", 2, 1)
    assert answer.silent == (RasProcess("172.16.64.245", 1524345, (1,)),)
    assert answer.dead == ()


def test_the_comma_that_2_28_leaves_out_is_put_in_and_said() -> None:
    """With a rank missing its JSON is none; without one it is read as it is."""
    ranks = [rank_row(0, 100, {"AllReduce": 7})]
    broken = json_report("2.28.9", [communicator("0xabc", ranks, [missing_row(1, 101)])])
    answer = read_structured_answer(broken)
    assert answer.notes == (REPAIRED,)
    assert answer.silent == (RasProcess("10.0.0.1", 101, (1,)),)
    sound = read_structured_answer(json_report("2.28.9", [communicator("0xabc", ranks)]))
    assert (sound.notes, sound.silent) == ((), ())


def test_ranks_nobody_knows_of_are_counted_and_unknown_processes_stay_unknown() -> None:
    """`size` may exceed both lists; `host` may be unknown and `pid` -1."""
    ranks = [rank_row(0, -1, {"AllReduce": 7}, "unknown"), rank_row(1, 101, {"Sendrecv": 1})]
    (comm,) = read_structured_answer(
        json_report("2.32.3", [communicator("0xabc", ranks, size=5)])
    ).communicators
    assert comm.unknown == 3
    assert {n.operation: n.listed[0].process for n in comm.launched} == {
        "AllReduce": None,
        "Sendrecv": RasProcess("10.0.0.1", 101, (1,)),
    }


def test_a_rank_that_answers_and_is_no_member_is_not_silent() -> None:
    """`unresponsive` false: it has left the communicator."""
    rows = [missing_row(1, 101, unresponsive=False), missing_row(2, 102, dead=True)]
    answer = read_structured_answer(
        json_report("2.30.7", [communicator("0xabc", [rank_row(0, 100, {})], rows)])
    )
    assert (answer.silent, answer.dead) == ((), (RasProcess("10.0.0.1", 102, (2,)),))
    states = {s.state: [m.rank for m in s.listed] for s in answer.communicators[0].states}
    assert states == {"RUNNING": [0], "NOCOMM": [1]}


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\xff" * 4000, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"{" * 9000, b"[]", b"{}",
     b'{"communicators": 5}', b"Rank 1 -- GPU 1 managed by process 1 on node x\n" * 9],
)  # fmt: skip
def test_what_is_no_report_is_refused(data: bytes) -> None:
    """Strangers, noise and bombs are no answer in either form."""
    with pytest.raises(NotRasError):
        read_text_answer(data)
    with pytest.raises(NotRasError):
        read_structured_answer(data)


def test_wrong_types_say_nothing() -> None:
    """A field of another type than documented is left out, never guessed."""
    row = {"rank": "0", "host": 5, "pid": True, "status": [], "collective_counts": {"A": "x"}}
    answer = read_structured_answer(
        json_report("2.30.7", [communicator("0xabc", [row], [row, 7]), 5])
    )
    (comm,) = answer.communicators
    assert comm.launched == ()
    assert answer.silent == ()
