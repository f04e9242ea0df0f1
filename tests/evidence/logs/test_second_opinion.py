"""The model of words beside the rules: it confirms or doubts, and names a fault where none is."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.evidence.logs.words.components import component_event
from brctl.evidence.logs.words.marked_lines import marked_lines
from brctl.evidence.logs.words.second_opinion import (
    NO_WORDS,
    ORDINARY,
    WELL,
    proof_of_words,
    second_opinion,
    side_of_words,
    with_ordinary,
)
from brctl.evidence.logs.words.word_model import Heard, hear
from brctl.library.log_model import shipped_model
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass, Origin
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
STEP = "epoch 3 iter 120: loss 2.31 lr 0.0001, 31.5 samples/s"
OUT_OF_MEMORY = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"


def classify(words: dict[FaultClass, float], *lines: str) -> LogVerdict:
    reader = LineReader("rank-3.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("rank-3.log", reader.events(), words=words)


def test_without_the_model_everything_stays_as_it_was() -> None:
    """A caller that has no text states what the rules state."""
    for fault in FaultClass:
        assert second_opinion(fault, 0.7, NO_WORDS) == (fault, 0.7)


def test_agreement_makes_surer_and_never_sure() -> None:
    """A model that is sure of the same class moves it nearer to one, a likely one lifts it."""
    sure, likely = ({FaultClass.GPU_OOM: share, FaultClass.PCIE: 0.3} for share in (0.7, 0.5))
    fault, stated = second_opinion(FaultClass.GPU_OOM, 0.7, sure)
    assert fault is FaultClass.GPU_OOM
    assert 0.7 < stated < 1.0
    assert second_opinion(FaultClass.GPU_OOM, 0.7, likely) == (FaultClass.GPU_OOM, 0.7)
    assert second_opinion(FaultClass.GPU_OOM, 0.45, likely)[1] > 0.5


def test_a_component_by_its_name_is_no_surer_for_the_same_words() -> None:
    """Two readers of one word are one witness: a single line stays a lead."""
    words = {FaultClass.NETWORK_IB: 0.9}
    event = component_event(
        {1: "infiniband ibx0: post of work failed: -12"}, "a.log", known_to_none
    )
    assert event is not None
    alone, both = (judge("a.log", [event], words=heard) for heard in (NO_WORDS, words))
    assert alone.fault is FaultClass.NETWORK_IB
    assert both.fault is FaultClass.UNKNOWN
    assert both.leads[0].fault is FaultClass.NETWORK_IB
    assert both.leads[0].probability == alone.probability


def known_to_none(_: str) -> bool:
    return False


def test_health_is_as_sure_as_the_words_that_speak_for_it() -> None:
    """Lines that sound healthy confirm it; where others speak louder it is not claimed."""
    health = FaultClass.NO_FAULT
    confirmed, some, doubted = (
        second_opinion(health, 0.7, {FaultClass.PCIE: 1.0 - share, health: share})
        for share in (0.9, 0.7, 0.5)
    )
    assert confirmed[0] is some[0] is health
    assert confirmed[1] > some[1] == 0.7
    assert doubted[0] is FaultClass.UNKNOWN
    assert doubted[1] < 0.5


def test_the_surer_of_two_that_name_other_faults_is_believed() -> None:
    """A model that is sure outvotes a rule that is not; one that is not makes it less sure."""
    hardly = {FaultClass.GPU_OOM: 0.2, FaultClass.PCIE: 0.3}
    likely, sure = ({FaultClass.GPU_OOM: 0.1, FaultClass.PCIE: share} for share in (0.5, 0.7))
    said = [second_opinion(FaultClass.GPU_OOM, 0.8, words) for words in (hardly, likely)]
    assert [fault for fault, _ in said] == [FaultClass.GPU_OOM] * 2
    assert 0.8 > said[0][1] > said[1][1]
    fault, stated = second_opinion(FaultClass.GPU_OOM, 0.8, sure)
    assert fault is FaultClass.PCIE
    assert stated < 0.8


def test_words_do_not_make_a_cause_of_what_the_rules_found_to_follow() -> None:
    """They know no order: what comes after another line is as loud as what came first."""
    sure = {FaultClass.GPU_OOM: 0.1, FaultClass.PCIE: 0.7}
    fault, stated = second_opinion(FaultClass.GPU_OOM, 0.8, sure, consequences={FaultClass.PCIE})
    assert fault is FaultClass.GPU_OOM
    assert stated < 0.6


def test_what_is_read_from_numbers_is_not_put_to_the_words() -> None:
    """A loss that jumps is said in the words of sound training."""
    rows = [f"iteration {700 + n}/ 900 | lm loss: 2.1 | grad norm: 1.1 |" for n in range(10)]
    jumped = classify(well(0.95), *rows, "iteration 710/ 900 | lm loss: 41.3 | grad norm: 212.0 |")
    assert jumped.fault is FaultClass.NUMERIC_NAN
    assert jumped.evidence[0].signature == "progress.jump"


def test_rules_that_go_by_words_are_no_less_denied_by_the_model() -> None:
    """That it hears the same says nothing; that it hears another fault says as much as ever."""
    same = {FaultClass.GPU_OOM: 0.9}
    assert second_opinion(FaultClass.GPU_OOM, 0.62, same, of_words=True)[1] == 0.62
    other = {FaultClass.PCIE: 0.9}
    assert second_opinion(FaultClass.GPU_OOM, 0.62, other, of_words=True)[0] is FaultClass.PCIE


def test_a_bare_kill_has_no_reason_by_its_words() -> None:
    """A bare SIGKILL stays unknown however much its words speak for memory."""
    line = "srun: error: node07: task 3: Killed"
    said = classify({FaultClass.CPU_OOM: 0.95}, line)
    assert said.fault is classify({}, line).fault is FaultClass.UNKNOWN


DENIED = "probe: connection to store.example timed out, Network is unreachable"


def test_a_class_that_the_words_deny_stays_in_view() -> None:
    """The rules' line is context now, their class an alternative: the reader sees both."""
    assert classify({}, DENIED).fault is FaultClass.NETWORK_ETH
    said = classify({FaultClass.USER_CODE: 0.95, FaultClass.NETWORK_ETH: 0.01}, DENIED)
    assert said.fault is FaultClass.USER_CODE
    assert FaultClass.NETWORK_ETH in dict(said.alternatives)
    assert DENIED in [line.text for line in said.evidence if line.role is Role.CONTEXT]
    assert not [line for line in said.evidence if line.role is Role.ROOT]


def test_a_class_that_the_words_hardly_see_becomes_a_lead() -> None:
    """It is no longer claimed, and stays the first thing to look at."""
    said = classify({FaultClass.USER_CODE: 0.45, FaultClass.NETWORK_ETH: 0.01}, DENIED)
    assert said.fault is FaultClass.UNKNOWN
    assert said.leads[0].fault is FaultClass.NETWORK_ETH


def test_an_unknown_cause_has_the_side_that_most_words_speak_for() -> None:
    """No class is likely, and whose it is may be: most of them are the machine's."""
    both = {FaultClass.PCIE: 0.3, FaultClass.GPU_LOST: 0.3, FaultClass.USER_CODE: 0.3}
    assert side_of_words(both) is Origin.INFRA
    assert side_of_words({FaultClass.PCIE: 0.4, FaultClass.USER_CODE: 0.4}) is Origin.UNKNOWN
    said = classify(both, "the cat sat on the mat")
    assert (said.fault, said.origin) == (FaultClass.UNKNOWN, Origin.INFRA)


def test_words_alone_claim_a_fault_weakly_and_never_health() -> None:
    """Where no rule found anything: from the share on at which they were mostly right."""
    fault = classify({FaultClass.PCIE: 0.5}, "the cat sat on the mat")
    assert fault.fault is FaultClass.PCIE
    assert fault.probability < 0.7
    assert fault.culprit is None
    assert classify({FaultClass.PCIE: 0.3}, "the cat sat on the mat").fault is FaultClass.UNKNOWN
    doubtful = {FaultClass.PCIE: 0.5, FaultClass.NO_FAULT: 0.4}
    assert classify(doubtful, "the cat sat on the mat").fault is FaultClass.UNKNOWN
    well = {FaultClass.PCIE: 0.01, FaultClass.NO_FAULT: 0.9}
    assert classify(well, "the cat sat on the mat").fault is FaultClass.UNKNOWN


TRAINING = {1: STEP, 2: "saved to runs/7", 3: "epoch 4 iter 10: loss 1.97 lr 0.0001"}


def test_words_of_healthy_training_are_a_weak_proof() -> None:
    """They stand with their share as evidence, and below it prove nothing."""
    proof = proof_of_words(heard(TRAINING, 0.85), "a.log", 3)
    assert proof is not None
    assert proof.signature is WELL
    assert proof.text == f"no-fault 0.85 by words alone: {TRAINING[proof.line]}"
    assert judge("a.log", [proof], words=well(0.85)).fault is FaultClass.NO_FAULT
    assert proof_of_words(heard(TRAINING, 0.8), "a.log", 3) is None
    assert proof_of_words(heard({}, 1.0), "a.log", 0) is None


def test_many_lines_prove_health_where_few_do_not() -> None:
    """A start of four lines may be well; of many one would have told."""
    assert proof_of_words(heard(TRAINING, 0.75), "a.log", 40) is not None
    assert proof_of_words(heard(TRAINING, 0.65), "a.log", 40) is None


ORDINARY_ALARM = "WARNING:tensorflow:Model failed to serialize as JSON. Ignoring... no get_config"
STEPS = tuple(f"step: {n} loss: 2.{n} lr: 0.0001" for n in range(10, 18))
STRANGE = "fluxd[81]: capacitor bank 3 failed to align, code 77"


def unread(*lines: str) -> tuple[list[LogEvent], Heard]:
    reader = LineReader("a.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    events = reader.events()
    return events, hear(shipped_model(), dict(enumerate(lines, 1)), events)


def test_an_alarm_that_the_model_knows_from_logs_that_are_well_is_ordinary() -> None:
    """One that it does not know stays, and so does what a log ends with."""
    events, heard = unread(ORDINARY_ALARM, STRANGE, *TRAINING.values())
    kept = with_ordinary(events, heard, range(1, 6))
    assert [e.line for e in events if e.signature is UNEXPLAINED] == [1, 2]
    assert [e.line for e in kept if e.signature is UNEXPLAINED] == [2]
    assert [e.line for e in kept if e.signature is ORDINARY] == [1]


@pytest.mark.parametrize("lines", [(*STEPS, ORDINARY_ALARM), (*STEPS, *[ORDINARY_ALARM] * 20)])
def test_an_alarm_newer_than_all_proofs_stays_one_however_often_it_comes(
    lines: tuple[str, ...],
) -> None:
    """Only so many lines of one family are kept: its newest one counts."""
    events, heard = unread(*lines, "closing the writer", "done", "bye", "ok")
    assert with_ordinary(events, heard, range(1, len(lines) + 5)) == events


def test_words_alone_call_nothing_slow() -> None:
    """A listing of clocks has the same words whatever its numbers say."""
    listing = "        SM                                : 2025 MHz"
    for fault in (FaultClass.GPU_SLOW, FaultClass.STRAGGLER_SLOW):
        assert classify({fault: 0.9}, listing).fault is FaultClass.UNKNOWN
    assert classify({FaultClass.PCIE: 0.9}, listing).fault is FaultClass.PCIE


def test_what_a_program_calls_a_warning_is_not_proved_well_by_words() -> None:
    warned = {**TRAINING, 4: "WARN agent: card 3 gave no answer, leaving it out"}
    assert proof_of_words(heard(warned, 0.95), "a.log", 40) is None


def heard(lines: dict[int, str], share: float) -> Heard:
    return Heard(shipped_model(), marked_lines(lines, ()), well(share))


def well(share: float) -> dict[FaultClass, float]:
    return {FaultClass.NO_FAULT: share, FaultClass.GPU_OOM: 1.0 - share}


def test_a_proof_by_words_is_not_made_surer_by_the_same_words() -> None:
    """The model made it: that no line speaks for a fault is what it said already."""
    proof = proof_of_words(heard(TRAINING, 0.9), "a.log", 3)
    assert proof is not None
    alone, both = (judge("a.log", [proof], words=each) for each in (NO_WORDS, well(0.9)))
    assert alone.fault is both.fault is FaultClass.NO_FAULT
    assert both.probability == alone.probability


def test_words_of_health_prove_nothing_beside_an_alarm() -> None:
    """One line that failed, known or not, is more than all words of training."""
    proof = proof_of_words(heard(TRAINING, 0.9), "a.log", 3)
    assert proof is not None
    reader = LineReader("a.log", INDEX)
    reader.read(2, b"fluxd[81]: capacitor bank 3 failed to align, code 77")
    said = judge("a.log", [proof, *reader.events()], words=well(0.9))
    assert said.fault is FaultClass.UNKNOWN
    assert classify({}, OUT_OF_MEMORY).fault is FaultClass.GPU_OOM
