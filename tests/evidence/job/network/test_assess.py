"""The network fails at a node when all its paths are bad and its peers have good ones."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from brctl.evidence.job.network.assess import assess_network
from brctl.evidence.job.network.leaf_border import at_the_border_of_a_leaf
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Weight
from brctl.model.fault import FaultClass
from brctl.model.jobs.job import Job, example_job
from brctl.model.jobs.job_status import JobStatus, RankView, StepHistory, StepWindow
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus

GOOD = {"segments_now": 900.0, "lost_now": 0.0, "segments": 9e6, "lost": 40.0, "delay_ms": 0.05}
GOOD |= {"path_mtu": 9000.0, "timeouts_in_a_row": 0.0}
LOSSY = {"lost_now": 18.0}
LATE = {"delay_ms": 50.2}
STUCK = {"timeouts_in_a_row": 5.0, "segments_now": 0.0}
NARROW = {"path_mtu": 576.0}

Ways = Mapping[tuple[str, str], Mapping[str, float]]


def fleet(size: int) -> Job:
    return replace(example_job(), nodes=tuple(f"g{n:02d}" for n in range(1, size + 1)), axes=())


def ring(job: Job) -> list[tuple[str, str]]:
    """Who talks to whom: neighbours, both ways."""
    pairs = list(zip(job.nodes, [*job.nodes[1:], job.nodes[0]], strict=True))
    return [*pairs, *((b, a) for a, b in pairs)]


def mesh(job: Job) -> list[tuple[str, str]]:
    return [(a, b) for a in job.nodes for b in job.nodes if a != b]


def address(job: Job, node: str) -> str:
    return f"10.0.0.{job.nodes.index(node) + 1}"


def reports(job: Job, talk: list[tuple[str, str]], bad: Ways) -> list[NodeReport]:
    rows: dict[str, list[Measurement]] = {
        node: [Measurement("fabric.tcp.own_address", f"address:{address(job, node)}", True)]
        for node in job.nodes
    }
    for source, peer in talk:
        for name, value in {**GOOD, **bad.get((source, peer), {})}.items():
            subject = f"peer:{address(job, peer)}"
            rows[source].append(Measurement(f"fabric.tcp.{name}", subject, value))
    return [
        NodeReport(
            node, Outcome.ANSWERED,
            (CheckResult("fabric.tcp", ProbeStatus.MEASURED, tuple(found)),),
        )
        for node, found in rows.items()
    ]  # fmt: skip


def judge(
    job: Job, talk: list[tuple[str, str]], bad: Ways, *, stalled: bool = True
) -> tuple[Evidence, ...]:
    status = JobStatus(job, (), 40, 70.0 if stalled else 0.1, stalled=stalled, silent=())
    return assess_network(status, reports(job, talk, bad))


def of_node(job: Job, talk: list[tuple[str, str]], node: str, what: Mapping[str, float]) -> Ways:
    """Everything a node sends, and what its peers send to it."""
    return {pair: what for pair in talk if node in pair and pair in set(mesh(job))}


@pytest.mark.parametrize("what", [LOSSY, LATE, STUCK, NARROW])
@pytest.mark.parametrize(("size", "shape"), [(4, ring), (5, mesh), (16, ring), (3, mesh)])
def test_the_node_with_nothing_but_bad_paths_is_named(
    what: Mapping[str, float], size: int, shape: object
) -> None:
    job = fleet(size)
    talk = shape(job)  # type: ignore[operator]  # one of the two above
    node = job.nodes[size // 2]
    (item,) = judge(job, talk, of_node(job, talk, node, what))
    assert (item.subject.node, item.weight) == (node, Weight.CONVICTS)
    assert item.fault is FaultClass.NETWORK_LINK


@pytest.mark.parametrize("what", [LOSSY, LATE])
def test_what_only_the_node_itself_sees_is_enough(what: Mapping[str, float]) -> None:
    """Packets are lost on their way out: its peers receive late, and lose nothing themselves."""
    job = fleet(4)
    talk = ring(job)
    bad = {pair: what for pair in talk if pair[0] == "g03"}
    (item,) = judge(job, talk, bad)
    assert item.subject.node == "g03"


@pytest.mark.parametrize(("now_s", "weight"), [(1.0, Weight.HINTS), (3.0, Weight.CONVICTS)])
def test_a_job_of_which_some_steps_became_far_longer_is_hurt(now_s: float, weight: Weight) -> None:
    """A packet that is lost now and then costs the steps in which it is."""
    job = fleet(4)
    even = [StepWindow(n, 25, 1.0, mean_s=1.0, trimmed_mean_s=1.0) for n in (0, 25, 50)]
    since = [StepWindow(n, 25, 1.0, mean_s=now_s, trimmed_mean_s=now_s) for n in (75, 100)]
    history = StepHistory((*even, since[0]), since[1], since[1])
    status = JobStatus(job, (), 124, 0.1, stalled=False, silent=(), history=history)
    talk = ring(job)
    (item,) = assess_network(status, reports(job, talk, of_node(job, talk, "g03", LOSSY)))
    assert (item.subject.node, item.weight) == ("g03", weight)


def test_a_bad_path_between_two_names_neither() -> None:
    job = fleet(6)
    (item,) = judge(job, ring(job), {("g02", "g03"): STUCK, ("g03", "g02"): STUCK})
    assert (item.subject.node, item.weight) == ("", Weight.HINTS)
    assert "g02-g03" in item.text


def test_a_network_that_is_bad_everywhere_is_no_nodes() -> None:
    job = fleet(6)
    talk = mesh(job)
    (item,) = judge(job, talk, {pair: LOSSY for pair in talk})
    assert (item.subject.node, item.fault) == ("", FaultClass.NETWORK_SWITCH)


def test_a_job_that_goes_on_as_ever_convicts_nobody() -> None:
    job = fleet(4)
    talk = ring(job)
    (item,) = judge(job, talk, of_node(job, talk, "g02", LOSSY), stalled=False)
    assert item.weight is Weight.HINTS


@pytest.mark.parametrize(
    "what",
    [{"lost": 90000.0}, {"lost_now": 1.0}, {"delay_ms": 2.0},
     {"segments_now": 20.0, "lost_now": 2.0}, {"timeouts_in_a_row": 1.0}, {"path_mtu": 8900.0}],
)  # fmt: skip
def test_small_or_old_trouble_of_a_job_that_goes_on_is_none(what: Mapping[str, float]) -> None:
    job = fleet(4)
    talk = ring(job)
    assert judge(job, talk, of_node(job, talk, "g02", what), stalled=False) == ()


def longer_steps(job: Job, *, in_collectives: bool = True) -> JobStatus:
    """Steps of 0.1 s that take 2 s now, and rank 0 waits so much longer, or does not."""
    windows = tuple(StepWindow(25 * i, 25, 0.1, wait_s=0.01) for i in range(4))
    now = StepWindow(900, 25, 2.0, wait_s=1.9 if in_collectives else 0.01)
    history = StepHistory(windows, now, now)
    return JobStatus(job, (), 40, 0.1, stalled=False, silent=(), history=history)


IDLE, BUSY = {"busy_pct": 3.0}, {"busy_pct": 99.0}


def busy_paths(job: Job, *busy: tuple[str, str]) -> list[NodeReport]:
    talk = ring(job)
    return reports(job, talk, {pair: BUSY if pair in busy else IDLE for pair in talk})


@pytest.mark.parametrize("size", [3, 4, 16])
def test_the_one_path_that_always_has_something_to_send_is_what_longer_steps_wait_for(
    size: int,
) -> None:
    """A limit holds its packets back and loses none; neither of its ends is named."""
    job = fleet(size)
    (item,) = assess_network(longer_steps(job), busy_paths(job, ("g03", "g02")))
    assert (item.subject.node, item.fault) == ("", FaultClass.NETWORK_LINK)
    assert item.weight is Weight.CONVICTS
    assert "g03 sends to g02 for 99 % of the time" in item.text


def test_a_busy_path_says_nothing_of_a_job_that_is_as_quick_as_ever_or_slow_elsewhere() -> None:
    job = fleet(4)
    busy = busy_paths(job, ("g03", "g02"))
    as_ever = JobStatus(job, (), 40, 0.1, stalled=False, silent=())
    for status in (as_ever, longer_steps(job, in_collectives=False)):
        assert assess_network(status, busy) == ()


def as_slow_as_ever(job: Job, *, waits_s: float) -> JobStatus:
    """Steps of 2 s since the first, of which every rank spends so much in collectives."""
    even = tuple(StepWindow(25 * i, 25, 2.0, wait_s=waits_s) for i in range(4))
    ranks = tuple(
        RankView(r, job.nodes[r % len(job.nodes)], alive=True, step_s=2.0, wait_s=waits_s)
        for r in range(8)
    )
    history = StepHistory(even, even[-1], even[-1])
    return JobStatus(job, ranks, 40, 0.1, stalled=False, silent=(), history=history)


@pytest.mark.parametrize(("waits_s", "weights"), [(1.9, [Weight.HINTS]), (0.5, [])])
def test_a_path_that_was_slow_from_the_first_step_is_a_hint_where_most_of_a_step_is_waiting(
    waits_s: float, weights: list[Weight]
) -> None:
    """A job that never was quicker was no-fault HIGH beside a link at a thousandth of its rate."""
    job = fleet(4)
    status = as_slow_as_ever(job, waits_s=waits_s)
    found = assess_network(status, busy_paths(job, ("g03", "g02")))
    assert [item.weight for item in found] == weights


def test_where_busy_paths_share_no_place_none_is_the_odd_one() -> None:
    job = fleet(4)
    two = busy_paths(job, ("g03", "g02"), ("g01", "g04"))
    assert assess_network(longer_steps(job), two) == ()


def one_way(job: Job, slow: Ways) -> list[NodeReport]:
    """A ring whose data goes one way round; the way back carries next to nothing."""
    way = {pair: {"segments_now": 25.0, "busy_pct": 10.0} for pair in ring(job)}
    forth = zip(job.nodes, [*job.nodes[1:], job.nodes[0]], strict=True)
    way |= {pair: {"segments_now": 500.0, "busy_pct": 4.0} for pair in forth}
    return reports(job, ring(job), {pair: {**way[pair], **slow.get(pair, {})} for pair in way})


LIVE = {
    ("g02", "g03"): {"busy_pct": 39.0, "segments_now": 336.0}, ("g03", "g02"): {"busy_pct": 56.0},
    ("g03", "g04"): {"busy_pct": 58.0, "segments_now": 368.0}, ("g04", "g03"): {"busy_pct": 29.0},
    ("g01", "g02"): {"busy_pct": 12.0, "segments_now": 315.0},
}  # fmt: skip
"""As read in a lab whose third node had a cable of 20 Mbit/s, on a busy day."""


@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("slow_pct", [None, 60.0, 99.0])
def test_a_node_whose_paths_are_all_busy_while_others_send_as_much_at_once_is_a_hint(
    size: int, slow_pct: float | None
) -> None:
    """Its cable was slow from the first step: no path is the odd one, and its node is."""
    job = fleet(size)
    both = {pair: {"busy_pct": slow_pct or 0.0} for pair in ring(job) if "g03" in pair}
    status = as_slow_as_ever(job, waits_s=1.5)
    (item,) = assess_network(status, one_way(job, both if slow_pct else LIVE))
    assert (item.subject.node, item.weight) == ("g03", Weight.HINTS)
    assert item.fault is FaultClass.NETWORK_LINK
    assert "g02 sends to g03" in item.text
    assert "at g03" in item.text
    assert assess_network(as_slow_as_ever(job, waits_s=0.9), one_way(job, LIVE)) == ()


def test_a_node_held_back_since_steps_became_longer_is_a_hint_and_one_path_convicts() -> None:
    """Who sends more than others may be meant to; what sends without an end is not."""
    job = fleet(4)
    (item,) = assess_network(longer_steps(job), one_way(job, LIVE))
    assert (item.subject.node, item.weight) == ("g03", Weight.HINTS)
    (item,) = assess_network(longer_steps(job), busy_paths(job, ("g03", "g02")))
    assert item.weight is Weight.CONVICTS


def test_a_path_that_is_slow_both_ways_names_neither_of_its_nodes() -> None:
    job = fleet(6)
    both = busy_paths(job, ("g03", "g02"), ("g02", "g03"))
    (item,) = assess_network(as_slow_as_ever(job, waits_s=1.9), both)
    assert (item.subject.node, item.weight) == ("", Weight.HINTS)


def star(job: Job) -> list[tuple[str, str]]:
    return [pair for pair in mesh(job) if job.nodes[0] in pair]


def tree(job: Job) -> Ways:
    """The first node gives to two, each of which gives to two more: it sends all the time."""
    below = {n: (2 * n + 1, 2 * n + 2) for n in range(len(job.nodes))}
    return {
        (job.nodes[n], job.nodes[m]): {"busy_pct": 90.0 if n == 0 else 45.0, "segments_now": 800.0}
        for n, two in below.items() for m in two if m < len(job.nodes)
    }  # fmt: skip


@pytest.mark.parametrize("name", ["server", "server of a mesh", "tree", "pipeline", "sampled"])
def test_a_sound_job_whose_nodes_send_unevenly_hints_at_none(name: str) -> None:
    job = fleet(7)
    little = {"segments_now": 20.0, "busy_pct": 1.0}
    line = list(zip(job.nodes, job.nodes[1:], strict=False))
    ways: dict[str, Ways] = {
        # All send to and get from one: nobody elsewhere sends as much.
        "server": {pair: BUSY if pair[0] == "g01" else IDLE for pair in star(job)},
        "server of a mesh": {p: BUSY if p in star(job) else little for p in mesh(job)},
        "tree": tree(job),
        # Only the middle is at it in the moment of the look.
        "pipeline": {p: BUSY if p in line[2:4] else little for p in line},
        # One node's look fell into the exchange, and the others' caught half of it.
        "sampled": {
            p: {"busy_pct": 60.0, "segments_now": 900.0} if p[0] == "g03"
            else {"busy_pct": 30.0, "segments_now": 450.0} for p in ring(job)
        },
    }  # fmt: skip
    found = reports(job, list(ways[name]), ways[name])
    for status in (as_slow_as_ever(job, waits_s=1.9), longer_steps(job)):
        assert assess_network(status, found) == ()


def test_a_node_that_loses_packets_is_named_before_the_path_that_is_busy_with_them() -> None:
    job = fleet(4)
    bad = {**of_node(job, ring(job), "g02", LOSSY), ("g03", "g02"): {**LOSSY, **BUSY}}
    (item,) = assess_network(longer_steps(job), reports(job, ring(job), bad))
    assert item.subject.node == "g02"


def test_a_quiet_path_does_not_acquit_a_node() -> None:
    """Between it and the rank that keeps the store nothing travels that could be lost."""
    job = fleet(5)
    talk = [*ring(job), ("g04", "g01"), ("g01", "g04")]
    quiet = {"segments_now": 2.0, "segments": 40.0, "lost": 0.0}
    bad = {**of_node(job, ring(job), "g04", LOSSY), ("g04", "g01"): quiet, ("g01", "g04"): quiet}
    (item,) = judge(job, talk, bad)
    assert item.subject.node == "g04"


def test_an_address_that_two_nodes_claim_is_nobodys() -> None:
    """One node may speak only of itself: a claim cannot pull another's paths to the claimant."""
    job = fleet(4)
    talk = ring(job)
    answers = reports(job, talk, of_node(job, talk, "g03", STUCK))
    stolen = Measurement("fabric.tcp.own_address", f"address:{address(job, 'g03')}", True)
    (result,) = answers[0].results
    liar = replace(
        answers[0], results=(replace(result, measurements=(*result.measurements, stolen)),)
    )
    status = JobStatus(job, (), 40, 70.0, stalled=True, silent=())
    named = {e.subject.node for e in assess_network(status, [liar, *answers[1:]])}
    assert "g01" not in named


def test_a_fleet_that_was_not_asked_says_nothing() -> None:
    job = fleet(4)
    status = JobStatus(job, (), 40, 70.0, stalled=True, silent=())
    assert assess_network(status, [NodeReport(n, Outcome.UNREACHABLE) for n in job.nodes]) == ()


def late_where_busy(delay_ms: float, load: float, elsewhere: float) -> Evidence:
    """All paths of g02, whose host has one load and all others another."""
    job = fleet(5)
    bad = of_node(job, mesh(job), "g02", {"delay_ms": delay_ms})
    told = [
        replace(r, results=(*r.results, CheckResult("host.cpu", ProbeStatus.MEASURED, (
            Measurement("host.cpu.load_per_cpu", "", load if r.node == "g02" else elsewhere),
        ))))
        for r in reports(job, mesh(job), bad)
    ]  # fmt: skip
    status = JobStatus(job, (), 40, 70.0, stalled=True, silent=())
    (item,) = assess_network(status, told)
    assert item.subject.node == "g02"
    return item


@pytest.mark.parametrize(
    ("delay_ms", "load", "weight"),
    [(8.0, 0.5, Weight.CONVICTS), (8.0, 3.0, Weight.CONTEXT),
     (50.2, 3.0, Weight.CONVICTS), (16.0, 3.0, Weight.CONVICTS)],
)  # fmt: skip
def test_an_answer_of_a_busy_host_may_be_late_by_its_waits_for_a_processor(
    delay_ms: float, load: float, weight: Weight
) -> None:
    """Of 5 to 10 ms a path was bad on hosts that were only busy."""
    assert late_where_busy(delay_ms, load, load).weight is weight


@pytest.mark.parametrize(
    ("delay_ms", "load", "elsewhere", "weight"),
    [(200.0, 60.0, 0.5, Weight.CONVICTS), (200.0, 1e12, 1e12, Weight.CONVICTS),
     (8.0, 60.0, 0.5, Weight.HINTS)],
)  # fmt: skip
def test_no_load_hides_a_sick_path(
    delay_ms: float, load: float, elsewhere: float, weight: Weight
) -> None:
    """Load counts waits for a file server too: 200 ms behind a sick network were nothing."""
    assert late_where_busy(delay_ms, load, elsewhere).weight is weight


def test_a_dead_path_that_every_rank_waits_for_is_what_stops_the_job() -> None:
    """Both of its ends stay unnamed; where a rank stands elsewhere, it may be only a sign."""
    job = fleet(6)
    waiting = tuple(RankView(n, job.nodes[n], alive=True, phase="all_reduce") for n in range(6))
    elsewhere = (replace(waiting[0], phase="forward"), *waiting[1:])
    found = reports(job, ring(job), {("g02", "g03"): STUCK})
    for ranks, weight in ((waiting, Weight.CONVICTS), (elsewhere, Weight.HINTS)):
        status = JobStatus(job, ranks, 40, 70.0, stalled=True, silent=())
        (item,) = assess_network(status, found)
        assert (item.subject.node, item.weight) == ("", weight)


def test_a_node_that_some_peers_reach_is_not_cut_off_from_the_others() -> None:
    """Half of the job sat in another network, and the node of rank 0 was named for it."""
    job = fleet(6)
    quiet = {"segments": 14.0, "segments_now": 0.0, "lost": 0.0}
    near = {("g01", peer): quiet for peer in ("g02", "g03")}
    far = {(peer, "g01"): {**STUCK, **quiet} for peer in ("g04", "g05", "g06")}
    found = reports(job, [*near, *far], {**near, **far})
    ranks = tuple(RankView(n, job.nodes[n], alive=True, phase="start") for n in range(6))
    status = JobStatus(job, ranks, None, 70.0, stalled=True, silent=())
    (item,) = assess_network(status, found)
    assert (item.subject.node, item.fault) == ("", FaultClass.NETWORK_SWITCH)
    assert item.weight is Weight.CONVICTS


@pytest.mark.parametrize(
    ("lost", "device"),
    [
        ([("g01", "g04"), ("g02", "g05"), ("g03", "g07")], "leaf:a"),
        ([("g01", "g04"), ("g02", "g05"), ("g03", "g06")], "leaf:a+b"),
        ([("g01", "g04"), ("g02", "g05"), ("g04", "g05")], ""),
        ([("g01", "g04"), ("g01", "g05")], ""),
        ([("g07", "g01"), ("g07", "g02"), ("g07", "g03")], ""),
    ],
    ids=["leaves one leaf", "between two", "inside of one too", "few", "of one node"],
)
def test_bad_paths_that_all_cross_the_border_of_a_leaf_are_its_uplinks(
    lost: list[tuple[str, str]], device: str
) -> None:
    """Steps took twice as long for it, and the answer was unknown."""
    job = fleet(8)
    leaves = {node: "abc"[n // 3] for n, node in enumerate(job.nodes)}
    found = reports(job, mesh(job), dict.fromkeys(lost, LOSSY))
    status = JobStatus(job, (), 40, 0.1, stalled=True, silent=())
    first = assess_network(status, found)
    (item,) = at_the_border_of_a_leaf(first, status, found, leaves)
    assert item.subject.device == device
    assert (item.fault is FaultClass.NETWORK_SWITCH) is bool(device)
    assert at_the_border_of_a_leaf(first, status, found, {}) == first
