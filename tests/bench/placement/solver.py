"""Arnold's mixed-integer program by HiGHS, where somebody installed SciPy: the judge of the bench.

Of each row the nodes in each domain are whole numbers. Minimised is what `objective` counts.
"""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec

from brctl.playbook.placement.assign import Free, Rows
from tests.bench.placement.clusters import ALPHA, SetUp

LIMIT_S = 5.0


def installed() -> bool:
    """Whether there is a solver to ask."""
    return find_spec("scipy") is not None


def objective(rows: Rows) -> float:
    """Domains used and domains under the widest row, weighted."""
    used = {domain for row in rows for domain in row}
    return ALPHA * len(used) + (1 - ALPHA) * max(len(set(row)) for row in rows)


def solved(free: Free, of: SetUp) -> tuple[float, bool] | None:
    """The least objective HiGHS finds within its time, and whether it proved that nothing is less.

    None where it finds no placement.
    """
    numpy, optimize = import_module("numpy"), import_module("scipy.optimize")
    sparse = import_module("scipy.sparse")
    layout = _Variables(of.rows, len(free))
    cost = numpy.zeros(layout.count)
    cost[layout.widest] = 1 - ALPHA
    for domain in range(len(free)):
        cost[layout.used(domain)] = ALPHA
    lows: list[float] = []
    highs: list[float] = []
    at: tuple[list[int], list[int]] = ([], [])
    values: list[float] = []
    for number, (terms, low, high) in enumerate(_constraints(list(free.values()), of, layout)):
        lows.append(low)
        highs.append(high)
        for variable, factor in terms:
            at[0].append(number)
            at[1].append(variable)
            values.append(factor)
    matrix = sparse.csr_matrix((values, at), shape=(len(lows), layout.count))
    upper = numpy.ones(layout.count)
    upper[: layout.chosen(0, 0)] = of.length
    upper[layout.widest] = len(free)
    found = optimize.milp(
        cost, integrality=numpy.ones(layout.count), bounds=optimize.Bounds(0, upper),
        constraints=optimize.LinearConstraint(matrix, lows, highs),
        options={"time_limit": LIMIT_S},
    )  # fmt: skip
    return None if found.x is None else (float(found.fun), found.status == 0)


class _Variables:
    """Where each variable stands: nodes by row and domain, whether a row uses it, whether any."""

    def __init__(self, rows: int, domains: int) -> None:
        self.domains, self._pairs = domains, rows * domains
        self.widest = 2 * self._pairs + domains
        self.count = self.widest + 1

    def nodes(self, row: int, domain: int) -> int:
        return row * self.domains + domain

    def chosen(self, row: int, domain: int) -> int:
        return self._pairs + row * self.domains + domain

    def used(self, domain: int) -> int:
        return 2 * self._pairs + domain


Constraint = tuple[list[tuple[int, float]], float, float]


def _constraints(free: list[int], of: SetUp, at: _Variables) -> Iterator[Constraint]:
    """Rows are filled, domains hold, what has nodes is used, and the widest row is the widest."""
    never = float("inf")
    for row in range(of.rows):
        nodes = [(at.nodes(row, domain), 1.0) for domain in range(at.domains)]
        yield nodes, of.length, of.length
        chosen = [(at.chosen(row, domain), 1.0) for domain in range(at.domains)]
        yield [*chosen, (at.widest, -1.0)], -never, 0
        for domain in range(at.domains):
            pair = at.chosen(row, domain)
            yield [(at.nodes(row, domain), 1.0), (pair, -float(of.length))], -never, 0
            yield [(pair, 1.0), (at.used(domain), -1.0)], -never, 0
    for domain, count in enumerate(free):
        yield [(at.nodes(row, domain), 1.0) for row in range(of.rows)], 0, count
