"""The two ends of a streamed log, by line number."""

from hypothesis import given
from hypothesis import strategies as st

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.logs.text_sample import END_BYTES, TextSample


def sample_of(data: bytes, block: int) -> TextSample:
    sample = TextSample()
    for start in range(0, len(data), block):
        sample.feed(data[start : start + block])
    sample.newlines = data.count(b"\n")
    return sample


@given(
    st.lists(st.from_regex(r"[a-z]{1,20}", fullmatch=True), max_size=40),
    st.integers(min_value=1, max_value=100),
)
def test_a_short_log_is_kept_whole_however_it_arrives(lines: list[str], block: int) -> None:
    """Every line has its own number, whatever the sizes of the blocks."""
    data = "\n".join(lines).encode()
    assert dict(sample_of(data, block).lines()) == dict(enumerate(lines, 1))


def test_a_long_log_keeps_its_ends_with_their_numbers() -> None:
    """The middle is dropped, the numbers stay true, and no line is cut."""
    total = 100_000
    data = "".join(f"line number {n}\n" for n in range(1, total + 1)).encode()
    for block in (1 << 20, 70_000, 4096):
        lines = sample_of(data, block).lines()
        assert all(text == f"line number {number}" for number, text in lines.items())
        assert min(lines) == 1
        assert max(lines) == total
        assert len(lines) < total // 8


def test_a_classified_log_numbers_its_last_lines_by_the_search_for_anchors() -> None:
    """Blocks end within lines, and a line far too long is searched in pieces."""
    data = b"x" * (3 << 20) + b"\n" + b"".join(b"line number %d\n" % n for n in range(2, 50_001))
    sample = TextSample()
    blocks = Blocks([data[at : at + 70_001] for at in range(0, len(data), 70_001)])
    Classifier().read_events("rank.log", blocks, sample)
    assert sample.lines()[50_000] == "line number 50000"


def test_what_is_kept_is_bounded() -> None:
    """A gigabyte on one line costs no more than two ends."""
    sample = sample_of(b"x" * (20 * END_BYTES), 1 << 20)
    assert sum(len(text) for text in sample.lines().values()) <= 2 * END_BYTES
