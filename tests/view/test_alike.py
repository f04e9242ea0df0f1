"""Equal messages of many nodes are one line; what differs between them is not lost."""

from brctl.model.command import CommandResult, Outcome
from brctl.model.nodeset import fold
from brctl.view.alike import FEW_LINES, fold_alike
from brctl.view.gathered import gathered_page

REFUSED = "{a}:22: Connect call failed ('{a}', 22)"


def lines(*said: tuple[str, str]) -> list[tuple[str, str]]:
    return [(fold(e.nodes), e.text) for e in fold_alike(("check", *each) for each in said)]


def test_addresses_keep_nothing_apart_and_one_of_them_is_shown() -> None:
    said = [(f"n{i}", REFUSED.format(a=f"10.0.0.{i}")) for i in range(1, 4)]
    assert lines(*said) == [("n[1-3]", "10.0.0.1:22: Connect call failed ('10.0.0.1', 22), on n1")]
    assert lines(("n1", "fe80::1%2 is gone"), ("n2", "fe80::2%2 is gone")) != []


def test_a_node_that_names_itself_folds_and_its_neighbours_name_stays() -> None:
    assert lines(("n1", "n1 lost n10"), ("n2", "n2 lost n10")) == [("n[1-2]", "NODE lost n10")]
    assert lines(("n1", "n1 is down")) == [("n1", "n1 is down")]


def test_different_numbers_stay_apart_while_they_can_be_read() -> None:
    """`Xid 79` and `Xid 48` are two things."""
    assert lines(("n1", "Xid 79"), ("n2", "Xid 48"), ("n3", "Xid 79")) == [
        ("n[1,3]", "Xid 79"),
        ("n2", "Xid 48"),
    ]


def test_more_lines_than_one_reads_are_folded_by_their_numbers() -> None:
    said = [(f"n{i}", f"pid {i} waits") for i in range(FEW_LINES + 1)]
    assert lines(*said) == [("n[0-16]", "pid 0 waits, on n0")]


def test_two_gpus_of_one_node_are_two_lines() -> None:
    said = [(node, f"gpu 0000:{bus}:00.0 is lost") for node in ("n1", "n2") for bus in ("4a", "9b")]
    assert lines(*said) == [
        ("n[1-2]", "gpu 0000:4a:00.0 is lost"),
        ("n[1-2]", "gpu 0000:9b:00.0 is lost"),
    ]


def test_two_thousand_refused_nodes_are_one_line_of_run() -> None:
    answers = [
        CommandResult(
            f"gpu{i:04d}", Outcome.REFUSED, None, b"", b"", 0.1,
            REFUSED.format(a=f"10.1.{i // 250}.{i % 250}"),
        )
        for i in range(2000)
    ]  # fmt: skip
    assert gathered_page(answers, []).text.splitlines() == [
        "no answer (2000): gpu[0000-1999]",
        "  refused  gpu[0000-1999]  10.1.0.0:22: Connect call failed ('10.1.0.0', 22), on gpu0000",
    ]


def test_a_long_run_of_signs_is_folded_in_linear_time() -> None:
    """A node chooses its words: this one took minutes."""
    for sign in "=/":
        run = sign * 200_000
        assert [line.text for line in fold_alike([("k", "n1", run)])] == [run]
