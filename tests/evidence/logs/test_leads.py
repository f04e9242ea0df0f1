"""What is said of a log that no rule explains: the lines that stand out, and what they may mean."""

from dataclasses import replace
from itertools import islice
from string import ascii_lowercase

import pytest

from brctl.evidence.logs.event import LogEvent
from brctl.evidence.logs.leads import SIGNATURE, with_leads, with_leads_of, with_words
from brctl.evidence.logs.signature import Part, aside, root
from brctl.evidence.logs.words.line_words import BUCKETS, words_of
from brctl.evidence.logs.words.marked_lines import LINES_READ, marked_lines
from brctl.evidence.logs.words.unusual import rank_unusual
from brctl.evidence.logs.words.word_model import Heard, WordModel, hear
from brctl.library.log_model import shipped_model
from brctl.model.evidence import Role
from brctl.model.fault import FaultClass, Origin
from brctl.model.log_verdict import LogEvidence, LogVerdict

STEPS = [f"step {n} done, 3{n}.2 samples/s" for n in range(100, 140)]
ODD = "raft peer 7 lost its lease on the block volume"


@pytest.fixture(scope="module")
def model() -> WordModel:
    return shipped_model()


def heard(lines: dict[int, str]) -> Heard:
    return hear(shipped_model(), lines, ())


def by_number(*lines: str) -> dict[int, str]:
    return dict(enumerate(lines, 1))


def leads(verdict: LogVerdict, lines: dict[int, str], file: str = "") -> LogVerdict:
    return with_leads(verdict, lines, heard(lines), file)


def unknown(*evidence: LogEvidence) -> LogVerdict:
    return LogVerdict("a.log", FaultClass.UNKNOWN, Origin.UNKNOWN, None, 0.75, evidence)


def test_numbers_and_addresses_are_no_words() -> None:
    """Two lines that differ in values only look the same to the model."""
    first = "nvme0: timeout at 0x7f3a on queue 12, id deadbeef01"
    second = "nvme3: timeout at 0x11bb on queue 9, id 00c0ffee99"
    assert words_of(first) == words_of(second) == ["nvme", "timeout", "queue"]


def test_a_joined_name_speaks_as_a_whole_and_in_its_parts() -> None:
    """`ibv_modify_qp` is known even where only `modify` was seen before."""
    assert words_of("call to ibv_modify_qp") == ["call", "ibv_modify_qp", "ibv", "modify"]


def test_a_value_that_is_none_does_not_speak_of_its_name() -> None:
    """`number of nan iterations: 0` is in every sound log of some trainers."""
    row = "step 7 | loss: 2.41 | number of nan iterations: 0 | errors: none | grad norm: 1.2"
    assert words_of(row) == ["step", "loss", "grad", "norm"]
    assert "nan" in words_of("step 7 | number of nan iterations: 3 | grad norm: 1.2")
    assert words_of("Link detected: no") == ["link", "detected"]


def test_a_long_log_is_read_at_both_ends() -> None:
    """A bounded number of lines is looked at, the last ones among them."""
    names = (
        f"{one}{other}{third}"
        for one in ascii_lowercase
        for other in ascii_lowercase
        for third in ascii_lowercase
    )
    read = marked_lines(by_number(*islice(names, 3 * LINES_READ), "the very end"), ())
    assert len(read) == LINES_READ
    assert [line.text for line in (read[0], read[-1])] == ["aaa", "the very end"]
    assert [line.number for line in marked_lines({7: "", 8: "  ", 9: "one line"}, ())] == [9]


def test_lines_of_one_form_speak_once() -> None:
    """A message repeated with other numbers is no more evidence than one."""
    read = marked_lines(by_number(*STEPS, ODD), ())
    assert [line.text for line in read] == [STEPS[0], ODD]


def test_a_line_that_counts_is_no_repetition_of_one_that_counts_nothing() -> None:
    """Nor is one that a rule reads of one that none does: the sick row may come last."""
    rows = (
        "port 1: symbol errors: 0, link downed: 0",
        "port 2: symbol errors: 912, link downed: 3",
    )
    assert len(marked_lines(by_number(*rows), ())) == 2
    ended = by_number("task 3: exit status 0", "task 4: exit status 7")
    rule = root(FaultClass.NODE_FAILURE, "site.prolog", "status 7", 0.8, "test")
    read = marked_lines(ended, [LogEvent(rule, "a.log", 2, ended[2])])
    assert [line.number for line in read if line.named] == [2]


def test_what_a_site_calls_harmless_is_not_heard() -> None:
    """However often it comes: a reader keeps only some lines of a family."""
    noise = [f"flaky probe: uncorrectable error {n}" for n in range(9)]
    rule = replace(aside(Part.BENIGN, "site.noise", "flaky probe", "test"), beyond_words=True)
    kept = [LogEvent(rule, "a.log", 1, noise[0])]
    assert [line.text for line in marked_lines(by_number(*noise, ODD), kept)] == [ODD]


def test_a_rule_s_line_is_heard_wherever_it_stands() -> None:
    """The words of a log are read at its two ends, what the rules found may stand between."""
    rule = root(FaultClass.NODE_FAILURE, "site.prolog", "prolog", 0.8, "test")
    event = LogEvent(rule, "a.log", 7000, "prolog failed on n17, node will be drained")
    said = hear(shipped_model(), by_number(*STEPS), [event])
    assert 7000 in {line.number for line in said.lines}


def test_every_class_has_a_share(model: WordModel) -> None:
    """For words nobody ever saw and for no words at all too; none is above one."""
    for lines in ([], ["zzyzx qqfrob wibble"], STEPS):
        shares = model.shares(marked_lines(by_number(*lines), ()))
        assert set(shares) == set(FaultClass)
        assert all(0.0 <= share <= 1.0 for share in shares.values())


def test_one_line_among_many_ordinary_ones_still_speaks() -> None:
    """A cause takes one line; a log that trained for hours has thousands of others."""
    line = "nvme drive: i/o error, filesystem shut down, buffer lost"
    said = heard(by_number(*STEPS, line))
    assert said.shares[FaultClass.STORAGE_CHECKPOINT] > 0.5
    assert [spoken.text for spoken in said.speaking(FaultClass.STORAGE_CHECKPOINT)] == [line]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("nvme drive: i/o error, filesystem shut down, buffer lost", "storage-checkpoint"),
        ("dataloader worker could not open the image file, dataset is truncated", "data-loader"),
        ("temperature above threshold, clock throttled by thermal slowdown", "thermal-power"),
        ("gradient overflow, loss is nan, loss scale reduced", "numeric-nan"),
    ],
)
def test_words_of_a_fault_make_its_class_the_first_lead(line: str, fault: str) -> None:
    """Sentences no rule and no training log has still point to where to look."""
    said = leads(unknown(), {1: line})
    assert said.leads[0].fault.value == fault
    assert said.leads[0].lines == (line,)
    assert said.leads[0].source == "words"


def test_a_lead_claims_nothing() -> None:
    """Class, origin and probability stay what the rules said."""
    before = unknown()
    after = leads(before, {1: "filesystem i/o error on the nvme drive"})
    assert after.leads
    assert (after.fault, after.probability, after.alternatives) == (
        before.fault,
        before.probability,
        before.alternatives,
    )


def test_a_known_class_needs_no_lead() -> None:
    """What a rule explains is left alone."""
    known = LogVerdict("a.log", FaultClass.GPU_LOST, Origin.INFRA, None, 0.9)
    assert leads(known, {1: "filesystem i/o error"}) is known


def test_neither_health_nor_ignorance_is_a_lead() -> None:
    """An ordinary log has lines to show but no class to suspect."""
    said = leads(unknown(), dict(enumerate(STEPS, 1)))
    assert {lead.fault for lead in said.leads}.isdisjoint({FaultClass.NO_FAULT, FaultClass.UNKNOWN})


def test_the_odd_line_of_a_file_comes_first(model: WordModel) -> None:
    """One line unlike all the others is shown before them, with its own number."""
    lines = [*STEPS[:20], ODD, *STEPS[20:]]
    found = rank_unusual(lines, model)
    assert (found[0].number, found[0].text, found[0].alike) == (21, ODD, 1)
    assert [line.alike for line in found[1:]] == [len(STEPS)]


def test_a_line_of_alarm_is_more_unusual_than_a_plain_one(model: WordModel) -> None:
    """Of two strange lines the one that speaks of failure is shown first."""
    found = rank_unusual(["zorble gant accepted", "zorble gant failed"], model)
    assert found[0].text == "zorble gant failed"


def test_unusual_lines_are_shown_before_victims_with_their_place() -> None:
    """People read the top: what stands out comes first, and no line comes twice."""
    victim = LogEvidence(Role.VICTIM, "a.log", 7, "peer closed", "nccl.peer-closed")
    said = leads(unknown(victim), {7: "peer closed", 9: ODD}, "a.log")
    assert said.evidence[0] == LogEvidence(Role.CONTEXT, "a.log", 9, ODD, SIGNATURE)
    assert said.evidence[-1] == victim
    assert [line.line for line in said.evidence] == [9, 7]


def test_a_line_of_alarm_that_is_shown_already_moves_up_as_it_is() -> None:
    """What the reader kept of it (its count, its name) is not lost by showing it first."""
    plain = LogEvidence(Role.CONTEXT, "a.log", 3, "disk error, retry later", "unexplained", 2)
    odd = LogEvidence(Role.CONTEXT, "a.log", 9, f"{ODD}: fatal error", "unexplained", 4)
    said = leads(unknown(plain, odd), {3: plain.text, 9: odd.text}, "a.log")
    assert said.evidence == (odd, plain)


def test_leads_of_ranks_are_joined_over_all() -> None:
    """What one of two unknown inputs suggests counts half for the job."""
    line = "filesystem i/o error on the nvme drive"
    one = leads(unknown(), {1: line}, "a.log")
    two = leads(unknown(), {1: "zzyzx qqfrob"}, "b.log")
    joined = with_leads_of(unknown(), [one, two])
    assert joined.leads[0].fault is one.leads[0].fault
    assert joined.leads[0].probability < one.leads[0].probability
    assert {shown.file for shown in joined.evidence} == {"a.log", "b.log"}


def test_the_line_that_stands_out_most_comes_first_over_all_too() -> None:
    """The verdict over one input shows its lines in the order of that input's own verdict."""
    alarm = LogEvidence(Role.CONTEXT, "a.log", 9, f"{ODD}: fatal error", "unexplained")
    lines = {3: "process ended with status", 9: alarm.text}
    item = leads(unknown(alarm), lines, "a.log")
    overall = with_leads_of(unknown(alarm), [item])
    assert [line.line for line in overall.evidence] == [9, 3]


def test_tables_of_another_version_are_refused(model: WordModel) -> None:
    """Weights for other features would speak nonsense in silence."""
    with pytest.raises(ValueError, match="tables do not fit"):
        replace(model, weights=b"\0" * BUCKETS)
    with pytest.raises(ValueError, match="1 biases"):
        replace(model, bias=(0.0,))
    with pytest.raises(ValueError, match="marks do not fit"):
        replace(model, flags=())


def test_health_over_all_inputs_gives_way_to_a_fault_by_words_in_one() -> None:
    """The log of a rank that ended well does not make another one well: the claim is a lead."""
    line = "hbmd: hbm stack 3 page failed, row spare used up, uncorrectable"
    said = LogVerdict("a.log", FaultClass.GPU_MEMORY_ECC, Origin.INFRA, None, 0.65)
    claim = with_words(said, heard({1: line}), "a.log")
    assert claim.evidence[0].role is Role.ROOT
    well = LogVerdict("", FaultClass.NO_FAULT, Origin.UNKNOWN, None, 0.9)
    overall = with_leads_of(well, [claim])
    assert overall.fault is FaultClass.UNKNOWN
    assert overall.probability < 0.5
    assert [lead.fault for lead in overall.leads] == [FaultClass.GPU_MEMORY_ECC]
    ruled = LogVerdict("", FaultClass.GPU_LOST, Origin.INFRA, None, 0.9)
    assert with_leads_of(ruled, [claim]).fault is FaultClass.GPU_LOST
