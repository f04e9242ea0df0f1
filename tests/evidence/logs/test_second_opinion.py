"""The model of words beside the rules: it doubts or confirms a class, and never names a fault."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
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
        assert second_opinion(fault, 0.7, NO_WORDS) == 0.7


@pytest.mark.parametrize("fault", [FaultClass.GPU_OOM, FaultClass.NO_FAULT, FaultClass.UNKNOWN])
def test_agreement_makes_surer_and_never_sure(fault: FaultClass) -> None:
    """What two means say that share nothing was right more often than either states."""
    agreed = second_opinion(fault, 0.7, {fault: 0.6, FaultClass.PCIE: 0.4})
    assert 0.7 < agreed < 1.0


def test_a_nodes_health_that_words_do_not_deny_is_surer_than_its_proof() -> None:
    """Less than with agreement; where the words give health nothing, doubt stands."""
    well, other = FaultClass.NO_FAULT, FaultClass.UNKNOWN
    agreed = second_opinion(well, 0.66, {well: 0.6, other: 0.4}, of_a_node=True)
    unshared = second_opinion(well, 0.66, {well: 0.3, other: 0.7}, of_a_node=True)
    denied = second_opinion(well, 0.66, {well: 0.01, other: 0.99}, of_a_node=True)
    assert agreed > unshared > 0.66 > denied


@pytest.mark.parametrize(
    ("line", "surer"),
    [("systemd[1]: Started Node Exporter.", True), ("Saving checkpoints for 0 into run7/", False)],
)
def test_only_a_nodes_own_lines_make_it_a_nodes_health(line: str, surer: bool) -> None:
    """What one line of a job proves stays as it is stated."""
    words = {FaultClass.NO_FAULT: 0.3, FaultClass.UNKNOWN: 0.7}
    stated = classify({}, line).probability
    assert (classify(words, line).probability > stated) is surer


def test_doubt_needs_a_model_that_gives_the_class_nothing() -> None:
    """One that merely prefers another class says little; one that is sure of it says most."""
    rest = FaultClass.NO_FAULT
    prefers = second_opinion(FaultClass.GPU_OOM, 0.8, {FaultClass.GPU_OOM: 0.3, rest: 0.7})
    doubts = second_opinion(FaultClass.GPU_OOM, 0.8, {FaultClass.GPU_OOM: 0.01, rest: 0.5})
    denies = second_opinion(FaultClass.GPU_OOM, 0.8, {FaultClass.GPU_OOM: 0.01, rest: 0.9})
    assert 0.8 == prefers > doubts > denies


def test_a_class_that_the_words_deny_becomes_a_lead() -> None:
    """It is no longer claimed, and stays the first thing to look at."""
    line = "probe: connection to store.example timed out, Network is unreachable"
    denied = {FaultClass.NO_FAULT: 0.95, FaultClass.NETWORK_ETH: 0.01}
    assert classify({}, line).fault is FaultClass.NETWORK_ETH
    said = classify(denied, line)
    assert said.fault is FaultClass.UNKNOWN
    assert said.leads[0].fault is FaultClass.NETWORK_ETH


def test_words_alone_never_claim_a_fault() -> None:
    """A model that is sure of a fault changes nothing where no rule found one."""
    sure = {FaultClass.PCIE: 0.99, FaultClass.NO_FAULT: 0.01}
    assert classify(sure, "the cat sat on the mat").fault is FaultClass.UNKNOWN


def test_words_of_healthy_training_are_a_weak_proof() -> None:
    """They stand with their share as evidence, and only where two lines of training are."""
    lines = {1: STEP, 2: "saved to runs/7", 3: "epoch 4 iter 10: loss 1.97 lr 0.0001"}
    words = {FaultClass.NO_FAULT: 0.8, FaultClass.UNKNOWN: 0.2}
    proof = proof_of_words(words, lines, shipped_model(), "a.log")
    assert proof is not None
    assert proof.signature is WELL
    assert proof.text == f"no-fault 0.80 by words alone: {lines[proof.line]}"
    assert judge("a.log", [proof], words=words).fault is FaultClass.NO_FAULT
    assert proof_of_words({FaultClass.NO_FAULT: 0.3}, lines, shipped_model(), "a.log") is None
    alone = {1: STEP, 2: "saved to runs/7"}
    assert proof_of_words(words, alone, shipped_model(), "a.log") is None
    skipped = {n: f"Gradient overflow. Skipping step {n}" for n in range(1, 9)}
    assert proof_of_words(words, skipped, shipped_model(), "a.log") is None


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
