"""One look is a suspicion, two are enough, and silence ends none."""

from datetime import UTC, datetime, timedelta

from brctl.library.checks import usable_checks
from brctl.model.watch.state import Sighting, Suspicion
from brctl.watch.answers import FleetAnswers
from brctl.watch.node_rules import network_trouble, silence_sightings
from brctl.watch.suspicions import after_look, only_of, verdicts_that_cover
from tests.fakes.watching import measured

NOW = datetime(2026, 7, 5, 3, 2, tzinfo=UTC)
GPU = {("gpu", "n1")}


def seen(look: int, rule: str = "gpu", *sources: str) -> Sighting:
    return Sighting(rule, "n1", look, "gpu 5 is lost", sources or ("gpu.devices",))


def opened(rule: str = "gpu") -> dict[str, Suspicion]:
    return dict(after_look({}, [seen(4, rule)], set(), NOW).suspicions)


def test_one_look_suspects_and_the_next_confirms() -> None:
    first = after_look({}, [seen(4)], GPU, NOW)
    assert [s.key for s in first.opened] == ["gpu/n1"]
    assert not first.confirmed
    again = after_look(first.suspicions, [seen(4)], GPU, NOW)
    assert not again.confirmed, "the same look counted twice"
    second = after_look(again.suspicions, [seen(5)], GPU, NOW)
    assert [s.looks for s in second.confirmed] == [2]


def test_a_second_check_that_says_it_counts_as_a_second_look() -> None:
    both = seen(4, "gpu", "gpu.devices", "gpu.ecc")
    assert after_look({}, [both], GPU, NOW).confirmed


def test_a_clean_look_ends_it_and_silence_does_not() -> None:
    assert after_look(opened(), [], set(), NOW).suspicions
    assert [s.key for s in after_look(opened(), [], GPU, NOW).ended] == ["gpu/n1"]


def test_a_flap_stands_for_five_minutes() -> None:
    """Two alerts in five minutes are one adapter that flaps."""
    network = {("network", "n1")}
    between = after_look(opened("network"), [], network, NOW + timedelta(minutes=4))
    assert between.suspicions
    again = after_look(between.suspicions, [seen(9, "network")], network, NOW)
    assert again.confirmed
    assert not after_look(opened("network"), [], network, NOW + timedelta(minutes=6)).suspicions


def test_a_node_that_was_swapped_out_is_suspected_no_more() -> None:
    assert not only_of(opened(), {"n2", "llm"})


def test_a_silent_node_is_confirmed_after_a_minute() -> None:
    fleet = frozenset(f"n{number}" for number in range(128))
    first = after_look({}, silence_sightings({"n1": 31.0}, fleet), set(), NOW)
    assert not first.confirmed
    second = after_look(first.suspicions, silence_sightings({"n1": 61.0}, fleet), set(), NOW)
    assert [s.text for s in second.confirmed] == ["no answer for 61 s"]


def test_thirty_silent_nodes_are_one_sentence_about_the_way_to_them() -> None:
    fleet = frozenset(f"n{number}" for number in range(128))
    silent = {f"n{number}": 90.0 for number in range(30)}
    assert silence_sightings(silent, fleet) == ()
    assert "30 of 128 nodes are silent at once (n[0-29])" in network_trouble(silent, len(fleet))
    assert network_trouble(["n1", "n2"], 4) == ""


def test_an_answer_of_a_look_that_goes_on_is_no_look_more_when_that_look_ends() -> None:
    answers = FleetAnswers(usable_checks()[0])
    lost = measured("gpu.devices", "gpu:GPU-1", gpu__device__lost=True)

    def look(done: int, told: int, fresh: bool) -> int:
        result = {"gpu.devices": lost} if fresh else {}
        answers.take("n1", result, {10.0: done}, NOW, {"gpu.devices": told})
        (sighting,) = answers.node_sightings(NOW, {})
        return sighting.look

    assert [look(0, 1, fresh=True), look(1, 1, fresh=False), look(2, 1, fresh=False)] == [1, 1, 2]


def test_after_a_reconnect_an_old_answer_counts_only_once_a_look_has_ended() -> None:
    held = opened()
    assert not after_look(held, [seen(0)], GPU, NOW).confirmed
    assert after_look(held, [seen(1)], GPU, NOW).confirmed


def test_the_diagnosis_of_a_job_settles_the_signs_of_those_nodes_that_it_named() -> None:
    """One that began before the sign was confirmed has not looked at it."""
    seen_at = NOW + timedelta(seconds=5)
    other = Suspicion(
        "gpu", "n1", NOW, 1, "lost", confirmed_at=NOW, verdicts=("V-1",), named_at=seen_at,
        named=("n1", "n2"),
    )  # fmt: skip
    on_job = {"llm", "n1", "n2", "n3"}

    def covering(node: str, at: datetime) -> tuple[str, ...]:
        sign = Suspicion("gpu", node, NOW, 1, "lost", confirmed_at=at)
        return verdicts_that_cover(sign, [other], {node}, on_job)

    assert covering("n2", seen_at) == ("V-1",)
    assert covering("n3", seen_at) == ()
    assert covering("n2", seen_at + timedelta(seconds=1)) == ()
