"""Outliers to parallel group to nodes: the paper's example and what it leaves open."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.evidence.stacks.analyse import analyse_stacks, in_exchange, is_waiting
from brctl.evidence.stacks.fail_slow import most_flagged
from brctl.evidence.stacks.snapshot import (
    RankStack,
    normalise,
    read_own_frame,
    read_text,
    read_threads,
)
from brctl.model.jobs.job import Job, example_job

SYNC = ("distributed_c10d.py:all_reduce", "train.py:step")
RECV = ("p2p.py:irecv", "schedule.py:recv_forward")
SEND = ("p2p.py:isend", "schedule.py:send_forward")
LOAD = ("dataloader.py:__next__", "train.py:step")


def paper_job() -> Job:
    """Figure 7 of the paper: TP 2, PP 4, DP 4 on sixteen machines of two ranks."""
    nodes = tuple(f"m{i}" for i in range(16))
    axes = (("tp", 2), ("pp", 4), ("dp", 4))
    return replace(example_job(), nodes=nodes, ranks_per_node=2, axes=axes)


def paper_stacks() -> list[RankStack]:
    """Machine 15 hangs in a gather, 14 sends, 12 and 13 receive, all others synchronise."""
    odd = {15: ("mappings.py:gather_from_region",), 14: SEND, 13: RECV, 12: RECV}
    return [RankStack(rank, odd.get(rank // 2, SYNC)) for rank in range(32)]


def test_the_papers_example_names_its_pipeline() -> None:
    """Outliers on machines 12 to 15 share one tensor or pipeline group; four machines are named."""
    found = analyse_stacks(paper_stacks(), paper_job())
    assert found.outliers == tuple(range(24, 32))
    assert set(found.suspect_nodes) == {"m12", "m13", "m14", "m15"}


def test_one_odd_rank_names_its_node_alone() -> None:
    """The node is the smallest group: seven healthy ones are not evicted with it."""
    job = example_job()
    stacks = [RankStack(r, LOAD if r == 5 else SYNC) for r in range(8)]
    found = analyse_stacks(stacks, job)
    assert found.suspect_nodes == ("n6",)
    assert found.suspect_ranks == (5,)


def test_a_silent_rank_is_evidence() -> None:
    """A rank that gives no stack is an outlier, and its node is named."""
    stacks = [RankStack(r, SYNC) for r in range(8) if r != 3]
    found = analyse_stacks(stacks, example_job())
    assert found.silent == (3,)
    assert found.suspect_nodes == ("n4",)


def test_a_silent_node_beside_waiting_neighbours_is_the_cause() -> None:
    """The neighbour in its pipeline waits for it; the silent one is named alone."""
    stacks = [RankStack(r, RECV if r == 1 else SYNC) for r in range(8) if r != 3]
    found = analyse_stacks(stacks, example_job())
    assert found.outliers == (1, 3)
    assert found.suspect_nodes == ("n4",)


def test_a_stopped_process_stands_elsewhere_whatever_its_stack() -> None:
    """The stack of a stopped rank may equal the others'; its state does not."""
    stacks = [RankStack(r, SYNC, "T" if r == 6 else "S") for r in range(8)]
    found = analyse_stacks(stacks, example_job())
    assert found.suspect_ranks == (6,)


def test_equal_halves_are_decided_by_who_waits() -> None:
    """Half in a collective, half loading data: the loaders are awaited."""
    stacks = [RankStack(r, SYNC if r % 2 else LOAD) for r in range(8)]
    assert analyse_stacks(stacks, example_job()).outliers == (0, 2, 4, 6)


def test_the_few_who_wait_for_all_others_are_not_the_ones_that_hang() -> None:
    """All sleep in their own code but one that had got past it: its machine was named HIGH."""
    stacks = [RankStack(rank, SYNC if rank == 0 else LOAD) for rank in range(8)]
    result = analyse_stacks(stacks, example_job())
    assert result.suspect_nodes == ()
    assert "common cause" in result.reason


def test_when_nobody_differs_nobody_is_named() -> None:
    """All in one place: the cause is common."""
    found = analyse_stacks([RankStack(r, SYNC) for r in range(8)], example_job())
    assert (found.outliers, found.suspect_nodes) == ((), ())


def test_a_node_and_a_group_that_fit_equally_are_both_shown() -> None:
    """A tensor group that fills exactly one node: one machine either way, and both are said."""
    job = replace(example_job(), nodes=("a", "b", "c", "d"), ranks_per_node=2)
    stacks = [RankStack(r, RECV if r in (2, 3) else SYNC) for r in range(8)]
    found = analyse_stacks(stacks, job)
    assert [g.axis for g in found.candidates] == ["node", "tp"]
    assert found.suspect_nodes == ("b",)


def test_many_unrelated_outliers_are_a_common_cause() -> None:
    """Half the nodes outside any shared group: no machine is blamed."""
    stacks = [RankStack(r, (f"somewhere.py:f{r}",) if r in (0, 3, 5) else SYNC) for r in range(8)]
    found = analyse_stacks(stacks, example_job())
    assert found.suspect_nodes == ()
    assert "common cause" in found.reason


@pytest.mark.parametrize(
    "frame",
    ["connection.py:recv", "connection.py:wait", "adapters.py:send", "threading.py:wait",
     "synchronize.py:__enter__", "all_reduce_bench.py:load"],
)  # fmt: skip
def test_a_pipe_a_client_and_a_lock_are_no_wait_for_other_ranks(frame: str) -> None:
    """By the name alone a rank stuck in its pipe was one that waits for the others."""
    assert not is_waiting((frame, "train.py:step"))
    stacks = [RankStack(r, SYNC) for r in range(6)]
    odd = [RankStack(6, RECV), RankStack(7, (frame, "train.py:step"))]
    found = analyse_stacks([*stacks, *odd], replace(example_job(), axes=(("pp", 2), ("dp", 4))))
    assert found.suspect_ranks == (7,)


@pytest.mark.parametrize(
    "frame",
    ["distributed_c10d.py:recv", "schedules.py:_wait_batch_p2p", "p2p_communication.py:wait"],
)
def test_a_pipelines_own_functions_wait_for_one_other_rank(frame: str) -> None:
    assert in_exchange((frame, "train.py:step"))
    assert is_waiting((frame, "train.py:step"))


@pytest.mark.parametrize(
    "frame", ["c10d.cpp:c10d::Work::wait", "cuda.py:synchronize", "distributed_c10d.py:barrier",
              "Work::wait", "c10d::Work::wait"]
)  # fmt: skip
def test_a_collective_is_one_in_any_file(frame: str) -> None:
    assert is_waiting((frame, "train.py:step"))


@pytest.mark.parametrize(
    "frame",
    ["_functional_collectives.py:wait", "_functional_collectives.py:wait_tensor",
     "_functional_collectives.py:AsyncCollectiveTensor.wait", "partition_parameters.py:wait",
     "distributed_c10d.py:_CoalescingManager.wait", "distributed_c10d.py:wait"],
)  # fmt: skip
def test_a_handle_of_a_collective_waits_for_all_others(frame: str) -> None:
    """By its name alone it was a rank that stands elsewhere, and its node was named."""
    assert not in_exchange((frame, "train.py:step"))
    job = replace(example_job(), nodes=("n1", "n2"), ranks_per_node=1, axes=(("dp", 2),))
    stacks = [RankStack(0, (frame, "train.py:step")), RankStack(1, SYNC)]
    assert analyse_stacks(stacks, job).suspect_nodes == ()


def test_five_rounds_name_the_group_flagged_most() -> None:
    """One round of noise does not outvote four."""
    job = example_job()
    slow = [RankStack(r, LOAD if r in (4, 5) else SYNC) for r in range(8)]
    noise = [RankStack(r, LOAD if r in (0, 1) else SYNC) for r in range(8)]
    winners = most_flagged([slow, slow, noise, slow, slow], job)
    assert winners[0].ranks == (4, 5)


def test_rounds_without_outliers_name_nobody() -> None:
    """Silence about slowness is not an accusation."""
    assert most_flagged([[RankStack(r, SYNC) for r in range(8)]], example_job()) == ()


@settings(max_examples=50)
@given(st.randoms())
def test_the_order_of_answers_never_matters(rng: object) -> None:
    """Ranks answer in any order."""
    stacks = paper_stacks()
    rng.shuffle(stacks)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    assert analyse_stacks(stacks, paper_job()) == analyse_stacks(paper_stacks(), paper_job())


def test_line_numbers_and_addresses_do_not_part_equal_waits() -> None:
    """Normalised frames are file and function."""
    assert normalise([("f.constprop.0", "/a/b.cpp"), ("g<int, 3>", "/c/d.cpp")]) == (
        "b.cpp:f",
        "d.cpp:g",
    )


def test_py_spys_json_and_text_give_the_same_stack() -> None:
    """Both forms name the main thread, innermost first."""
    frames = [
        {"name": "all_reduce", "short_filename": "distributed_c10d.py", "line": 9},
        {"name": "step", "filename": "/home/u/train.py", "line": 3},
    ]
    threads = [
        {"thread_name": "loader", "frames": []},
        {"thread_name": "MainThread", "frames": frames},
    ]
    text = (
        'Thread 12 (idle): "loader"\n    wait (threading.py:3)\n'
        'Thread 11 (active): "MainThread"\n    all_reduce (torch/distributed_c10d.py:9)\n'
        "    step (train.py:3)\n"
    )
    assert read_threads(threads) == read_text(text) == SYNC


def test_the_jobs_own_code_counts_only_with_no_package_inside_of_it() -> None:
    """A lock of Python's own library taken by the job is the job's; a package's wait is not."""

    def thread(*places: str) -> list[dict[str, object]]:
        named = [{"name": f"f{i}", "place": place} for i, place in enumerate(places)]
        frames = [{"short_filename": "a.py", **frame} for frame in named]
        return [{"thread_name": "MainThread", "frames": frames}]

    assert read_own_frame(thread("job", "package", "job")) == "a.py:f0"
    assert read_own_frame(thread("python", "job", "job")) == "a.py:f1"
    assert read_own_frame(thread("package", "job")) == ""
    assert read_own_frame(thread("python")) == ""
    assert read_own_frame([{"frames": [{"name": "f"}, 3, None]}]) == ""
    assert read_own_frame("junk") == ""
