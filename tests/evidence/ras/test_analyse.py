"""Two answers of NCCL and the job's own processes lead to the ranks that others wait for."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from brctl.evidence.ras.analyse import Places, analyse_ras, confirmed
from brctl.evidence.ras.answer import Launched, RasProcess
from brctl.evidence.ras.facts import RankFacts, read_facts, strangers, version_of
from brctl.evidence.ras.node_evidence import assess_ras
from brctl.evidence.ras.permission import why_not
from brctl.evidence.ras.structured import read_structured_answer
from brctl.evidence.ras.text import read_text_answer
from brctl.model.evidence import Weight
from brctl.model.jobs.job import Job, example_job
from brctl.model.jobs.job_status import JobStatus, RankView
from brctl.model.jobs.ras import RasAnalysis, RasReason
from tests.fakes.ras_reports import (
    LAGGING_HOST,
    LAGGING_RANKS,
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

MOST_S = 30.0
"""Of CPU; row against row it would take an hour."""

HOSTS = tuple(f"10.0.0.{n}" for n in range(1, 9))


def example_facts(job: Job) -> tuple[RankFacts, ...]:
    """Rank r of the job is process 100 + r of its node, whose address ends in its number."""
    return tuple(
        RankFacts(
            rank, job.node_of(rank), 100 + rank, 100 + rank, "S",
            frozenset({HOSTS[job.nodes.index(job.node_of(rank))]}), "/lib/libnccl.so", "2.30.7",
            port=28028, listening=("127.0.0.1",),
        )
        for rank in range(job.world_size)
    )  # fmt: skip


def eight_nodes_of_two() -> Job:
    return replace(
        example_job(), ranks_per_node=2, axes=(("tp", 2), ("pp", 2), ("dp", 4)),
    )  # fmt: skip


def row(job: Job, rank: int, number: int, counts: Mapping[str, int], **status: object) -> object:
    """A rank of the job as the member `number` of a communicator."""
    host = HOSTS[job.nodes.index(job.node_of(rank))]
    return rank_row(number, 100 + rank, counts, host, **status)


def compare(
    job: Job, *looks: Sequence[object], facts: Sequence[RankFacts] | None = None
) -> RasAnalysis:
    """Answers of these communicators, one after the other."""
    answers = [read_structured_answer(json_report("2.30.7", look)) for look in looks]
    places = Places(example_facts(job) if facts is None else facts, {})
    return analyse_ras(answers, places, job, "n1")


def all_reduce(job: Job, counts: Mapping[int, int]) -> object:
    """A communicator of all ranks with these counts, 10 where none is given."""
    rows = [row(job, r, r, {"AllReduce": counts.get(r, 10)}) for r in range(job.world_size)]
    return communicator("0xabc", rows)


def mismatch_places() -> tuple[RankFacts, ...]:
    return tuple(
        RankFacts(rank, "n1", pid, pid, "S", frozenset({LAGGING_HOST}))
        for rank, pid in LAGGING_RANKS.items()
    )


@pytest.mark.parametrize(
    ("looks", "suspects", "moved"),
    [((6650,), 0, 0), ((6650, 6652), 0, 1), ((6650, 6650), 6, 0)],
    ids=["once", "moved", "frozen"],
)
def test_a_mismatch_counts_when_it_stands_still(
    looks: Sequence[int], suspects: int, moved: int
) -> None:
    """Once, or moved: operations overtook the question. Frozen: the six are named."""
    job = replace(example_job(), nodes=HOSTS[:4], ranks_per_node=8, axes=(("dp", 32),))
    job = replace(job, nodes=("n1", "n2", "n3", "n4"))
    answers = [read_text_answer(mismatch("2.26.5", most, "AllReduce")) for most in looks]
    found = analyse_ras(answers, Places(mismatch_places(), {}), job, "n1")
    assert (len(found.suspects), found.moved) == (suspects, moved)
    assert {s.rank for s in found.suspects} <= set(LAGGING_RANKS)
    assert {e.weight for e in assess_ras(found)} <= {Weight.HINTS}, "one node's word"
    again = confirmed(found, answers[-1], Places(mismatch_places(), {}))
    weights = {e.weight for e in assess_ras(again)}
    assert weights == ({Weight.CONVICTS} if suspects else set()), "all six are on one node"


def test_laggards_that_no_answer_names_are_counted() -> None:
    """Six lag, four are known: two are said to be not listed, and the four stay suspects."""
    job = replace(example_job(), nodes=("n1", "n2", "n3", "n4"), ranks_per_node=8)
    job = replace(job, axes=(("dp", 32),))
    answers = [read_text_answer(mismatch("2.26.5", 6650))] * 2
    found = analyse_ras(answers, Places(mismatch_places()[:4], {}), job, "n1")
    assert (len(found.suspects), found.unlisted) == (4, 2)
    assert "2 lagging ranks are not listed" in found.notes


def test_equal_counts_that_stand_still_name_nobody() -> None:
    """A symmetric hang looks sound to NCCL: no suspect, and no word of health."""
    job = eight_nodes_of_two()
    look = [all_reduce(job, {})]
    found = compare(job, look, look)
    assert (found.suspects, found.waiting, found.moved) == ((), 0, 0)
    assert assess_ras(found) == ()


def test_a_rank_that_lags_and_leads_elsewhere_waits_itself() -> None:
    """Rank 2 is late in one communicator because it waits for rank 5 in another: 5 is the root."""
    job = eight_nodes_of_two()
    first = communicator(
        "0xa", [row(job, r, r, {"AllReduce": 9 if r == 2 else 10}) for r in (0, 2)]
    )
    second = communicator(
        "0xb", [row(job, r, r, {"AllGather": 3 if r == 5 else 4}) for r in (2, 5)]
    )
    found = compare(job, [first, second], [first, second])
    assert [(s.rank, s.reason) for s in found.suspects] == [(5, RasReason.LAGS)]
    (evidence,) = assess_ras(found)
    assert (evidence.subject.node, evidence.weight) == ("n3", Weight.HINTS)


def test_stages_of_a_pipeline_may_send_unequally_often() -> None:
    """The first one sends what the last one receives; that is no lag."""
    job = eight_nodes_of_two()
    counts = ({"Send": 10, "AllReduce": 4}, {"Send": 0, "AllReduce": 4})
    look = [communicator("0xa", [row(job, r, r, counts[r]) for r in (0, 1)])]
    found = compare(job, look, look)
    assert (found.suspects, found.waiting) == ((), 0)


def test_ranks_that_caught_up_are_not_in_the_second_text() -> None:
    """It tells of unequal counts alone: who is not in it moved."""
    texts = [mismatch("2.26.5", 6650), text_report("2.26.5", (group_row(0, 1, 32),))]
    answers = [read_text_answer(text) for text in texts]
    found = analyse_ras(answers, Places(mismatch_places(), {}), eight_nodes_of_two(), "n1")
    assert (found.suspects, found.moved) == ((), 1)


def test_ranks_that_run_different_operations_disagree() -> None:
    """Behind in one kind and ahead in another is no machine."""
    job = eight_nodes_of_two()
    rows = [row(job, r, r, {"AllReduce": 10, "Broadcast": 2}) for r in range(15)]
    odd = row(job, 15, 15, {"AllReduce": 9, "Broadcast": 3})
    look = [communicator("0xabc", [*rows, odd])]
    found = compare(job, look, look)
    assert found.suspects == ()
    assert any("disagree on what comes next" in note for note in found.notes)


def test_laggards_of_one_parallel_group_are_its_nodes_and_only_hints() -> None:
    """Two nodes of one group lag together: which one is the cause NCCL cannot tell."""
    job = eight_nodes_of_two()
    look = [all_reduce(job, {0: 9, 2: 9})]
    found = compare(job, look, look)
    assert {s.node for s in found.suspects} == {"n1", "n2"}
    assert all("smallest group of all that lag: pp" in s.detail for s in found.suspects)
    assert {e.weight for e in assess_ras(found)} == {Weight.HINTS}


def test_laggards_everywhere_are_no_machine() -> None:
    """Seven of sixteen ranks on seven nodes: a common cause."""
    job = eight_nodes_of_two()
    look = [all_reduce(job, {r: 9 for r in (0, 3, 4, 7, 8, 11, 12)})]
    found = compare(job, look, look)
    assert found.suspects == ()
    assert any("common cause" in note for note in found.notes)


def test_most_ranks_behind_a_few_are_no_suspects() -> None:
    """Whom nearly everybody lags behind ran ahead; nothing is said of the many."""
    job = eight_nodes_of_two()
    look = [all_reduce(job, dict.fromkeys(range(15), 9))]
    assert compare(job, look, look).suspects == ()


@pytest.mark.parametrize(
    ("state", "weight"), [("T", Weight.CONVICTS), ("Z", Weight.CONVICTS), ("S", Weight.HINTS)]
)
def test_a_silent_process_is_believed_where_its_node_sees_it_stopped(
    state: str, weight: Weight
) -> None:
    """NCCL's own network may fail: a process that its node sees run is a hint alone."""
    job = eight_nodes_of_two()
    missing = missing_row(5, 105, HOSTS[2])
    look = [communicator("0xabc", [row(job, 0, 0, {"AllReduce": 1})], [missing])]
    facts = [replace(f, state=state) if f.rank == 5 else f for f in example_facts(job)]
    found = compare(job, look, facts=facts)
    assert [(s.rank, s.node, s.reason) for s in found.suspects] == [(5, "n3", RasReason.SILENT)]
    assert [e.weight for e in assess_ras(found)] == [weight]
    assert [e.weight for e in assess_ras(found, {5})] == [Weight.CONTEXT]


def test_a_dead_process_that_is_not_there_convicts_its_node() -> None:
    """Its address leads to the node, which has no such process any more."""
    job = eight_nodes_of_two()
    missing = missing_row(5, 999, HOSTS[2], dead=True)
    found = compare(job, [communicator("0xabc", [row(job, 0, 0, {})], [missing])])
    (evidence,) = assess_ras(found)
    assert (evidence.kind, str(evidence.subject)) == ("job.ras.dead", "n3")
    assert (evidence.weight, "n3 has no such process" in evidence.text) == (Weight.CONVICTS, True)


def test_a_process_of_an_unknown_address_convicts_nobody() -> None:
    """It is told, and blamed on no node."""
    found = analyse_ras([read_text_answer(STOPPED)], Places((), {}), eight_nodes_of_two(), "n1")
    assert [s.node for s in found.suspects] == [""]
    assert assess_ras(found) == ()
    known = Places((), {"172.16.64.213": "n7"})
    found = analyse_ras([read_text_answer(STOPPED)], known, eight_nodes_of_two(), "n1")
    assert [s.node for s in found.suspects] == ["n7"]
    (evidence,) = assess_ras(found)
    assert (evidence.weight, "n7 gave no word of it" in evidence.text) == (Weight.HINTS, True)


def test_errors_of_nccl_are_context_without_a_time() -> None:
    """Which rank failed first NCCL does not keep."""
    job = eight_nodes_of_two()
    rows = [
        row(job, 0, 0, {}),
        row(job, 1, 1, {}, async_error=6),
        row(job, 2, 2, {}, abort_flag=True),
    ]
    found = compare(job, [communicator("0xabc", rows)])
    assert found.failed == (
        "communicator abc: Remote process error on 1 ranks (rank 1)",
        "communicator abc: ABORT on 1 ranks (rank 2)",
    )
    assert {(e.weight, e.fault) for e in assess_ras(found)} == {(Weight.CONTEXT, None)}


def test_ranks_still_in_set_up_are_said() -> None:
    """Bootstrap, or a process that never came."""
    job = eight_nodes_of_two()
    rows = [row(job, 0, 0, {}), row(job, 1, 1, {}, init_state=7)]
    assert any("set up" in note for note in compare(job, [communicator("0xa", rows)]).notes)


def test_what_broke_off_or_is_unknown_is_noted() -> None:
    """Nothing is taken for sound because it was not said."""
    job = eight_nodes_of_two()
    notes = compare(job, [communicator("0xabc", [row(job, 0, 0, {})], size=9)]).notes
    assert any("8 of 9 ranks are not known" in note for note in notes)
    text = text_report("2.30.7", (group_row(0, 1, 32),), STOPPED_ERRORS)
    half = read_text_answer(text[: text.index(b"Warnings")])
    found = analyse_ras([half], Places((), {}), job, "n1")
    assert any("broke off" in note for note in found.notes)


def stalled(job: Job, phase: str = "forward", step: int | None = 7) -> JobStatus:
    ranks = tuple(RankView(r, job.node_of(r), alive=True, phase=phase) for r in range(4))
    return JobStatus(job, ranks, step, 300.0, stalled=True, silent=())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f, ""),
        (lambda f: replace(f, version="2.29.2"), ""),
        (lambda f: replace(f, version="2.29.1"), "2.29.1 can crash when asked with ranks missing"),
        (lambda f: replace(f, version=""), "release is not known"),
        (lambda f: replace(f, version="2.23.4"), "has no RAS service"),
        (lambda f: replace(f, enabled=False), "NCCL_RAS_ENABLE=0"),
        (lambda f: replace(f, library=""), "no rank has NCCL loaded"),
    ],
)
def test_a_job_that_could_be_hurt_is_not_asked(
    change: Callable[[RankFacts], RankFacts], said: str
) -> None:
    """Releases that die of the question, and jobs without the service."""
    job = eight_nodes_of_two()
    why = why_not(stalled(job), [*map(change, example_facts(job))], old_too=False)
    assert (said in why) if said else why == ""


@pytest.mark.parametrize(("phase", "step"), [("load", 7), ("forward", None)])
def test_a_job_that_may_be_starting_is_never_asked(phase: str, step: int | None) -> None:
    """While communicators are made even new releases can crash; no wish lifts that."""
    job = eight_nodes_of_two()
    for old_too in (False, True):
        why = why_not(stalled(job, phase, step), example_facts(job), old_too=old_too)
        assert "starting" in why


def test_an_old_release_is_asked_only_by_explicit_wish() -> None:
    """The configuration's key, or the flag."""
    job = eight_nodes_of_two()
    old = [replace(facts, version="2.27.3") for facts in example_facts(job)]
    assert why_not(stalled(job), old, old_too=True) == ""
    assert why_not(stalled(job), old, old_too=False) != ""


def test_the_oldest_release_decides_and_one_unknown_leaves_it_unknown() -> None:
    job = eight_nodes_of_two()
    facts = list(example_facts(job))
    facts[3] = replace(facts[3], version="2.27.7")
    assert version_of(facts) == (2, 27, 7)
    facts[3] = replace(facts[3], version="")
    assert version_of(facts) is None


def test_listeners_of_others_on_the_port_are_counted() -> None:
    """Sockets of the port that no rank of the node holds; unknown where they cannot be read."""
    job = eight_nodes_of_two()
    port, held = frozenset({"7", "8"}), frozenset({"7"})
    own = [replace(facts, sockets=port, own=held) for facts in example_facts(job)]
    assert strangers(own[:1]) == 1
    assert strangers([replace(own[0], own=None)]) == 0
    assert strangers([own[0], replace(own[1], own=frozenset({"8"}))]) == 0


@pytest.mark.parametrize("value", [None, 5, [], {}, {"pid": "7"}, {"pid": -1}, {"pid": True}])
def test_facts_of_another_shape_are_none(value: object) -> None:
    assert read_facts(0, "n1", "S", value) is None


def test_facts_keep_what_has_the_right_type() -> None:
    """A hostile node sends anything in any field."""
    sent = {"pid": 7, "addresses": [5, "10.0.0.1"], "ras": {"own": "x", "sockets": {}}, "pipe": 3}
    facts = read_facts(0, "n1", "S", sent)
    assert facts is not None
    assert (facts.pid_inside, facts.addresses, facts.own) == (7, frozenset({"10.0.0.1"}), None)


def test_many_unequal_counts_are_compared_in_bounded_time() -> None:
    """Four megabytes of made-up counts froze the controller for minutes."""
    job = eight_nodes_of_two()
    launched = tuple(Launched("AllReduce", n, 2, ()) for n in range(100_000))
    comm = replace(
        read_structured_answer(json_report("2.30.7", [all_reduce(job, {})])).communicators[0],
        launched=launched,
    )
    answer = read_structured_answer(json_report("2.30.7", [all_reduce(job, {})]))
    answers = [replace(answer, communicators=(comm,))] * 2
    began = time.process_time()
    assert analyse_ras(answers, Places((), {}), job, "n1").suspects == ()
    assert time.process_time() - began < MOST_S


def test_a_node_of_which_some_ranks_were_not_read_is_not_accused_of_a_missing_process() -> None:
    """The capture of stacks ran out of time after the first of its ranks."""
    job = eight_nodes_of_two()
    first = [f for f in example_facts(job) if f.rank != 5]
    answer = replace(
        read_structured_answer(json_report("2.30.7", [all_reduce(job, {})])),
        silent=(RasProcess(HOSTS[2], 105),),
    )
    found = analyse_ras([answer], Places(first, {}), job, "n1")
    assert {e.weight for e in assess_ras(found)} == {Weight.HINTS}
    assert "gave no word of it" in found.suspects[0].detail
