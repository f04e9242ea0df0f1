"""Where a job's ranks stand, as people read it."""

from collections import Counter
from collections.abc import Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.jobs.job import Job
from brctl.model.jobs.wanted_order import WantedOrder
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, rfc3339
from brctl.playbook.placement.advise import Advice, RankOrder
from brctl.playbook.placement.domains import LEVELS, Domains
from brctl.playbook.placement.price import ASSUMED, PlacePrice
from brctl.playbook.placement.spread import Spread
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable


def placement_page(
    job: Job,
    domains: Domains,
    advice: Advice,
    gone: Sequence[str],
    uptime_s: float | None,
    rate_source: str,
    *,
    movable: bool,
    price: PlacePrice = ASSUMED,
    waiting: WantedOrder | None = None,
) -> Page:
    """The answer of `job place`: exit 3 while a node's place is unknown, 1 where one is better."""
    unknown = [node for node in job.nodes if not domains.known(node)]
    orders = (("now", advice.now), ("rank-order", advice.rank_order), ("best", advice.best))
    body: dict[str, Json] = {
        "job": job.name,
        "level": domains.level or None,
        "domains": list(domains.named(job.nodes)),
        "unlabelled": unknown,
        "not_in_inventory": list(gone),
        "parallel": dict(job.axes),
        "orders": [_order_document(name, order, uptime_s) for name, order in orders],
        "lacking": dict(advice.lacking),
        "slowdown_a_domain_ratio": price.slower_a_domain,
        "slowdown_source": price.source,
        "expected_uptime_seconds": uptime_s,
        "rate_source": rate_source,
        "waiting": None
        if waiting is None
        else {
            "id": waiting.id,
            "by": waiting.by,
            "at": rfc3339(waiting.at),
            "nodes": list(waiting.after),
        },
    }
    lines = [_head(job, domains), *_gaps(unknown, gone, domains)]
    if domains.level:
        worth = _worth(advice, uptime_s, f"at most, {price.source}" if unknown else price.source)
        lines += [_table(advice, domains), *worth, *_lacking(advice)]
    if waiting is not None:
        lines.append(
            f"waits: rank order {waiting.id}, wanted by {printable(waiting.by, 40)}; the next run"
            " that restarts the job takes it along"
        )
    better = advice.rank_order != advice.now and waiting is None
    moves = (f"brctl job place {job.name} --apply rank-order",) if better and movable else ()
    code = _exit(advice, unknown)
    return Page("Placement", body, "\n".join(lines), code, (job.name,), next=moves)


def _order_document(name: str, order: RankOrder, uptime_s: float | None) -> dict[str, Json]:
    return {
        "order": name,
        "nodes": list(order.nodes),
        "spreads": [
            {"axis": s.axis, "groups": s.groups, "widest_domains": s.widest, "split": s.split,
             "total_domains": s.total}
            for s in order.spreads
        ],
        "moved_in": list(order.moved_in),
        "slowdown_ratio": order.slower_by,
        "seconds_until_next_stop": None if uptime_s is None else order.slower_by * uptime_s,
    }  # fmt: skip


def _exit(advice: Advice, unknown: Sequence[str]) -> ExitCode:
    if unknown:
        return ExitCode.UNKNOWN
    better = advice.rank_order != advice.now or advice.best.slower_by < advice.now.slower_by
    return ExitCode.WARNING if better else ExitCode.OK


def _head(job: Job, domains: Domains) -> str:
    axes = " x ".join(f"{axis} {size}" for axis, size in job.axes)
    used = len(domains.named(job.nodes))
    where = f"in {used} domains (label {domains.level})" if domains.level else "in unknown domains"
    return f"{job.name}: {len(job.nodes)} nodes {where}, {axes}"


def _gaps(unknown: Sequence[str], gone: Sequence[str], domains: Domains) -> list[str]:
    """What is not known, and what would tell."""
    lines = [f"not in the inventory: {fold(gone)}"] if gone else []
    if not domains.level:
        return [*lines, f"UNKNOWN: no node has a label {', '.join(LEVELS)}"]
    if unknown:
        lines.append(f"UNKNOWN: no {domains.level} for {fold(unknown)}; each counts as alone")
    return lines


def _table(advice: Advice, domains: Domains) -> str:
    axes = [s.axis for s in advice.now.spreads]
    head = ["", *(word for axis in axes for word in (f"{axis.upper()} MAX", "SPLIT")), "NODES IN"]
    moved = Counter(domains.of(node) for node in advice.best.moved_in)
    from_where = ", ".join(f"{count} in {printable(domain, 20)}" for domain, count in moved.items())
    rows = [
        ["now", *_cells(advice.now.spreads), "-"],
        ["rank order only", *_cells(advice.rank_order.spreads), "-"],
        ["best", *_cells(advice.best.spreads), from_where or "-"],
    ]
    return columns([head, *rows])


def _cells(found: Sequence[Spread]) -> list[str]:
    return [cell for s in found for cell in (str(s.widest), f"{s.split}/{s.groups}")]


def _worth(advice: Advice, uptime_s: float | None, how_sure: str) -> list[str]:
    """What each change saves; nothing where nothing is gained."""
    changes = (("by rank order only", advice.rank_order), ("with the best", advice.best))
    return [
        f"worth ({how_sure}): {saved:.1%} of a step{_until_next_stop(saved, uptime_s)} {how}"
        for how, order in changes
        if (saved := advice.now.slower_by - order.slower_by) > 0
    ]


def _until_next_stop(saved: float, uptime_s: float | None) -> str:
    if uptime_s is None:
        return ""
    return f", {describe_duration(saved * uptime_s)} until the next stop"


def _lacking(advice: Advice) -> list[str]:
    if not advice.lacking:
        return []
    where = ", ".join(f"{count} in {printable(d, 20)}" for d, count in advice.lacking.items())
    return [f"more free nodes would keep every group whole: {where}"]
