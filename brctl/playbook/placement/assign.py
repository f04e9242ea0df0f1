"""Fill rows of nodes from domains: whole rows first, or best-fit; whichever splits less.

Arnold (arXiv 2509.15940) solves this as a mixed-integer program. Taking the better of these two is
within 1 % of it (`python -m tests.bench.placement`) and needs no solver.
"""

from collections.abc import Mapping, Sequence

Free = Mapping[str, int]
Rows = tuple[tuple[str, ...], ...]
"""Of each row, the domain of each of its places."""


def place(free: Free, rows: int, length: int) -> Rows:
    """The better of both ways; empty where there are not nodes enough.

    Args:
        free: Nodes each domain has to give.
        rows: Groups to keep whole.
        length: Nodes of one.

    Examples:
        >>> place({"a": 7, "b": 9, "c": 8}, rows=2, length=2)
        (('a', 'a'), ('a', 'a'))
    """
    return min(arrangements(free, rows, length), key=cost, default=())


def arrangements(free: Free, rows: int, length: int) -> tuple[Rows, ...]:
    """Both ways to fill the rows; none where there are not nodes enough."""
    if sum(free.values()) < rows * length:
        return ()
    return whole_rows_first(free, rows, length), best_fit(free, rows, length)


def cost(rows: Rows) -> tuple[int, int, int]:
    """The widest row, rows split, domains used: less is better."""
    widths = [len(set(row)) for row in rows]
    return max(widths, default=0), sum(w > 1 for w in widths), len({d for r in rows for d in r})


def whole_rows_first(free: Free, rows: int, length: int) -> Rows:
    """Fill domains with whole rows; what is left over goes where most of it fits."""
    left, filled = dict(free), list[tuple[str, ...]]()
    whole = {d: n // length for d, n in free.items() if n >= length}
    for domain, count in _fill(whole, min(rows, sum(whole.values()))):
        filled += [(domain,) * length] * count
        left[domain] -= count * length
    used = {row[0] for row in filled}
    while len(filled) < rows:
        filled.append(_left_over_row(left, length, used))
    return tuple(filled)


def best_fit(free: Free, rows: int, length: int) -> Rows:
    """The fullest domains first, the last the tightest that holds the rest; rows cut as they come.

    What Slurm's topology/tree does with leaves, with ranks in the order of domains.
    """
    return cut([d for d, n in _fill(free, rows * length) for _ in range(n)], length)


def cut(places: Sequence[str], length: int) -> Rows:
    """Rows of consecutive places."""
    return tuple(tuple(places[at : at + length]) for at in range(0, len(places), length))


def lacking(have: Free, rows: int, length: int, limit: Free | None = None) -> Free:
    """The fewest further nodes, and where, that make the most rows whole.

    Args:
        have: Nodes of each domain now.
        rows: Rows wanted.
        length: Nodes of one.
        limit: How many more each domain has to give; None for as many as it takes.

    Examples:
        >>> lacking({"a": 7, "b": 9, "c": 8}, rows=3, length=8)
        {'a': 1}
    """
    now, more = dict(have), dict[str, int]()
    while sum(n // length for n in now.values()) < rows:
        short = {
            d: length - n % length
            for d, n in sorted(now.items())
            if limit is None or n - have[d] + length - n % length <= limit.get(d, 0)
        }
        if not short:
            break
        domain = min(short, key=lambda d: short[d])
        more[domain] = more.get(domain, 0) + short[domain]
        now[domain] += short[domain]
    return more


def _fill(free: Free, wanted: int) -> list[tuple[str, int]]:
    """How many of each domain: the fullest first, the last the tightest that holds the rest."""
    left, taken = dict(free), list[tuple[str, int]]()
    while wanted > 0:
        domain = _tightest(left, wanted) or _fullest(left)
        count = min(left.pop(domain), wanted)
        taken.append((domain, count))
        wanted -= count
    return taken


def _left_over_row(left: dict[str, int], length: int, used: set[str]) -> tuple[str, ...]:
    row: list[str] = []
    while len(row) < length:
        rest = length - len(row)
        domain = _tightest({d: n for d, n in left.items() if d in used}, rest) or _fullest(left)
        count = min(left[domain], rest)
        left[domain] -= count
        used.add(domain)
        row += [domain] * count
    return tuple(row)


def _tightest(free: Free, wanted: int) -> str:
    """The domain with the fewest nodes that are enough; "" where none has."""
    enough = [d for d in sorted(free) if free[d] >= wanted]
    return min(enough, key=lambda d: free[d], default="")


def _fullest(free: Free) -> str:
    return max(sorted(free), key=lambda d: free[d])
