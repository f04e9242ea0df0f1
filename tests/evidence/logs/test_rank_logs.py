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
