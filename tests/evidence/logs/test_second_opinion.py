"""The model of words beside the rules: it confirms or doubts, and names a fault where none is."""

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.words.components import component_event
from brctl.evidence.logs.words.second_opinion import NO_WORDS, WELL, proof_of_words, second_opinion
from brctl.library.log_model import shipped_model
from brctl.model.fault import FaultClass
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
    """What two means say that share nothing was right more often than either states."""
    words = {FaultClass.GPU_OOM: 0.6, FaultClass.PCIE: 0.4}
    fault, stated = second_opinion(FaultClass.GPU_OOM, 0.7, words)
    assert fault is FaultClass.GPU_OOM
    assert 0.7 < stated < 1.0


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


def test_health_is_as_sure_as_words_have_little_against_it() -> None:
    """No line that speaks for a fault confirms it most; one that does so loudly denies it."""
    well = FaultClass.NO_FAULT
    said = [
        second_opinion(well, 0.7, {FaultClass.PCIE: share, well: 0.1}) for share in (0.1, 0.5, 0.8)
    ]
    assert [fault for fault, _ in said] == [well] * 3
    silent, some, loud = (stated for _, stated in said)
    assert silent > some == 0.7 > loud


def test_only_a_model_sure_of_another_fault_doubts() -> None:
    """One that merely prefers another class says little."""
    words = {FaultClass.GPU_OOM: 0.05, FaultClass.PCIE: 0.7}
    assert second_opinion(FaultClass.GPU_OOM, 0.8, words) == (FaultClass.GPU_OOM, 0.8)
    fault, stated = second_opinion(FaultClass.GPU_OOM, 0.8, words | {FaultClass.PCIE: 0.95})
    assert fault is FaultClass.GPU_OOM
    assert stated < 0.8


def test_a_line_that_failed_without_a_reason_has_none_by_its_words() -> None:
    """A bare SIGKILL stays unknown however much its words speak for memory."""
    words = {FaultClass.CPU_OOM: 0.95}
    assert second_opinion(FaultClass.UNKNOWN, 0.57, words)[0] is FaultClass.UNKNOWN


def test_a_class_that_the_words_deny_becomes_a_lead() -> None:
    """It is no longer claimed, and stays the first thing to look at."""
    line = "probe: connection to store.example timed out, Network is unreachable"
    denied = {FaultClass.USER_CODE: 0.95, FaultClass.NETWORK_ETH: 0.01}
    assert classify({}, line).fault is FaultClass.NETWORK_ETH
    said = classify(denied, line)
    assert said.fault is FaultClass.UNKNOWN
    assert said.leads[0].fault is FaultClass.NETWORK_ETH


def test_words_alone_claim_a_fault_weakly_and_never_health() -> None:
    """Only what the model is sure of, where no rule found anything at all."""
    fault = classify({FaultClass.PCIE: 0.8}, "the cat sat on the mat")
    assert fault.fault is FaultClass.PCIE
    assert fault.probability < 0.7
    assert fault.culprit is None
    assert classify({FaultClass.PCIE: 0.4}, "the cat sat on the mat").fault is FaultClass.UNKNOWN
    well = {FaultClass.PCIE: 0.01, FaultClass.NO_FAULT: 0.6}
    assert classify(well, "the cat sat on the mat").fault is FaultClass.UNKNOWN


def test_words_of_healthy_training_are_a_weak_proof() -> None:
    """They stand with their share as evidence, and only where two lines of training are."""
    lines = {1: STEP, 2: "saved to runs/7", 3: "epoch 4 iter 10: loss 1.97 lr 0.0001"}
    words = {FaultClass.NO_FAULT: 0.8, FaultClass.UNKNOWN: 0.2, FaultClass.PCIE: 0.1}
    proof = proof_of_words(words, lines, shipped_model(), "a.log")
    assert proof is not None
    assert proof.signature is WELL
    assert proof.text == f"no-fault 0.80 by words alone: {lines[proof.line]}"
    assert judge("a.log", [proof], words=words).fault is FaultClass.NO_FAULT
    assert (
        proof_of_words(
            {FaultClass.NO_FAULT: 0.3, FaultClass.PCIE: 0.5}, lines, shipped_model(), "a.log"
        )
        is None
    )
    alone = {1: STEP, 2: "saved to runs/7"}
    assert proof_of_words(words, alone, shipped_model(), "a.log") is None
    skipped = {n: f"Gradient overflow. Skipping step {n}" for n in range(1, 9)}
    assert proof_of_words(words, skipped, shipped_model(), "a.log") is None


def test_a_proof_by_words_is_not_made_surer_by_the_same_words() -> None:
    """The model made it: that no line speaks for a fault is what it said already."""
    lines = {1: STEP, 3: "epoch 4 iter 10: loss 1.97 lr 0.0001"}
    words = {FaultClass.NO_FAULT: 0.9, FaultClass.GPU_OOM: 0.1}
    proof = proof_of_words(words, lines, shipped_model(), "a.log")
    assert proof is not None
    alone, heard = (judge("a.log", [proof], words=each) for each in (NO_WORDS, words))
    assert alone.fault is heard.fault is FaultClass.NO_FAULT
    assert heard.probability == alone.probability


def test_words_of_health_prove_nothing_beside_an_alarm() -> None:
    """One line that failed, known or not, is more than all words of training."""
    words = {FaultClass.NO_FAULT: 0.9, FaultClass.GPU_OOM: 0.1}
    lines = {1: STEP, 3: "epoch 4 iter 10: loss 1.97 lr 0.0001"}
    proof = proof_of_words(words, lines, shipped_model(), "a.log")
    assert proof is not None
    reader = LineReader("a.log", INDEX)
    reader.read(2, b"fluxd[81]: capacitor bank 3 failed to align, code 77")
    assert judge("a.log", [proof, *reader.events()], words=words).fault is FaultClass.UNKNOWN
    assert classify({}, OUT_OF_MEMORY).fault is FaultClass.GPU_OOM
