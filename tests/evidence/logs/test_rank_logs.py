"""What the ranks of a job said last, together: whom a line speaks of."""

import pytest

from brctl.evidence.logs.rank_logs import RankLog, assess_log_lines
from brctl.model.evidence import Role


@pytest.mark.parametrize(("ranks_a_node", "named"), [(4, {"n1"}), (1, {""})])
def test_what_most_ranks_say_names_a_node_only_where_it_is_one_nodes(
    ranks_a_node: int, named: set[str]
) -> None:
    """The first of many is no more to blame than the last."""
    text = (
        "[c10d] The client socket has failed to connect to [head.cluster]:29500 (errno: -3 -"
        " Temporary failure in name resolution).\n"
        "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
    )
    words = [
        RankLog(rank, f"n{rank // ranks_a_node + 1}", text, 1, alive=False) for rank in range(4)
    ]
    found = assess_log_lines(words)
    assert {item.subject.node for item in found if item.role is Role.ROOT} == named


@pytest.mark.parametrize(("nodes_that_say_it", "named"), [(2, {"n9"}), (4, {""})])
def test_what_the_ranks_of_many_nodes_say_names_none_of_them(
    nodes_that_say_it: int, named: set[str]
) -> None:
    """Half of a job found no rank 0, and the first node of that half was named for it."""
    text = "[c10d] The client socket has timed out after 60000ms while trying to connect to (h, 2)."
    first = 16 - 8 + 1
    words = [
        RankLog(n - 1, f"n{n}", text if first <= n < first + nodes_that_say_it else "", None, True)
        for n in range(1, 17)
    ]
    found = assess_log_lines(words)
    assert {item.subject.node for item in found if item.role is Role.ROOT} == named


@pytest.mark.parametrize(("ranks", "device"), [((5,), "rank:5"), ((5, 6), "code:job")])
def test_an_error_of_code_that_one_rank_alone_tells_of_came_to_light_there(
    ranks: tuple[int, ...], device: str
) -> None:
    """One node let its processes open too few files, and no place was named."""
    text = "OSError: [Errno 24] Too many open files: '/data/shard-7.tar'"
    words = [RankLog(n, f"n{n}", text if n in ranks else "", None, True) for n in range(8)]
    (found,) = {i.subject.device for i in assess_log_lines(words) if i.role is Role.ROOT}
    assert found == device
