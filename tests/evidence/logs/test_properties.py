"""What must hold for any set of logs."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.rank_logs import RankLog, assess_log_lines
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict
from tests.evidence.logs.examples import EXAMPLES

INDEX = LineIndex(SHIPPED)
ALL = [line for lines in EXAMPLES.values() for line in lines]
CLEAN = EXAMPLES["no-fault"]
LOGS = st.lists(st.lists(st.sampled_from(ALL), min_size=1, max_size=4), min_size=1, max_size=5)


def verdict(named: Sequence[tuple[str, Sequence[str]]]) -> LogVerdict:
    events = []
    for name, lines in named:
        reader = LineReader(name, INDEX)
        for number, line in enumerate(lines, 1):
            reader.read(number, line.encode())
        events += reader.events()
    return judge("", events)


def name_all(logs: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    return [(f"rank-{i:05d}.log", lines) for i, lines in enumerate(logs)]


@settings(max_examples=60)
@given(LOGS, st.randoms())
def test_the_order_of_inputs_never_matters(logs: list[list[str]], rng: object) -> None:
    """Shuffling the inputs changes nothing in the verdict."""
    named = name_all(logs)
    shuffled = list(named)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    assert verdict(named) == verdict(shuffled)


@settings(max_examples=60)
@given(LOGS, st.lists(st.sampled_from(CLEAN), max_size=5))
def test_a_clean_log_never_changes_the_verdict(logs: list[list[str]], clean: list[str]) -> None:
    """A healthy rank's log neither accuses nor excuses another."""
    before = verdict(name_all(logs))
    after = verdict([*name_all(logs), ("rank-99999.log", clean)])
    assert (before.fault, before.origin, before.culprit) == (
        after.fault,
        after.origin,
        after.culprit,
    )


@settings(max_examples=60)
@given(LOGS)
def test_probabilities_are_probabilities(logs: list[list[str]]) -> None:
    """Stated probability and alternatives lie in 0 to 1 and are no certainty."""
    actual = verdict(name_all(logs))
    assert 0.0 < actual.probability < 1.0
    assert all(0.0 <= p <= 1.0 for _, p in actual.alternatives)


@settings(max_examples=60)
@given(LOGS)
def test_removed_evidence_never_makes_a_rank_healthy(logs: list[list[str]]) -> None:
    """Words that are gone leave a rank at worst accused, never cleared."""
    ranks = [RankLog(i, f"n{i}", "\n".join(lines)) for i, lines in enumerate(logs)]
    silent = [RankLog(w.rank, w.node, "") for w in ranks]
    for found in (assess_log_lines(ranks), assess_log_lines(silent)):
        assert all(e.weight is not Weight.CLEARS for e in found)


@settings(max_examples=60)
@given(LOGS, st.randoms())
def test_last_words_do_not_depend_on_order(logs: list[list[str]], rng: object) -> None:
    """Ranks answer in any order."""
    ranks = [RankLog(i, f"n{i}", "\n".join(lines)) for i, lines in enumerate(logs)]
    shuffled = list(ranks)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    assert assess_log_lines(ranks) == assess_log_lines(shuffled)


@settings(max_examples=200)
@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(data: bytes) -> None:
    """Junk is read without an error and names no cause by accident of encoding."""
    reader = LineReader("junk", INDEX)
    for number, raw in enumerate(data.split(b"\n"), 1):
        reader.read(number, raw)
    assert judge("junk", reader.events()).fault in FaultClass


def test_the_silent_rank_is_suspected_when_all_others_lost_a_peer() -> None:
    """Survivors name a neighbour or themselves; the one whose log is empty died first."""
    lost = "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.4]:21345"
    ranks = [RankLog(r, f"n{r}", lost, 1, alive=False) for r in (0, 1, 3)]
    ranks.append(RankLog(2, "n2", "", -9, alive=False))
    found = assess_log_lines(ranks)
    roots = [e for e in found if e.role is Role.ROOT]
    assert [str(e.subject) for e in roots] == ["n2 rank:2"]
    assert all(e.role is Role.VICTIM for e in found if e not in roots)
