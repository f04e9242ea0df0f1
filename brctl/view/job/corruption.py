"""The search for the machine that computes wrongly, in sentences."""

from brctl.localise.repetitions import least_chance
from brctl.model.nodeset import fold
from brctl.model.sweeps.corruption import CorruptionOrder, CorruptionSearch, Method, MethodReport
from brctl.model.units import describe_duration

_HOUR_S = 3600.0
_NODES_SHOWN = 4


def plan_sentence(order: CorruptionOrder, chance: float) -> str:
    """How often each computation is repeated, and what for."""
    return (
        f"{order.repetitions} exact products and steps of a reference model on each at once: a"
        f" fault in {chance:.3g} of all calls is missed at {order.miss:.3g}; for at most"
        f" {describe_duration(order.budget_s)}"
    )


def search_sentences(found: CorruptionSearch) -> list[str]:
    """Each method with its time, then the verdict, or what is excluded and what more would cost."""
    lines = [found.order.not_replayed] if found.order.not_replayed else []
    lines += [_method_sentence(report) for report in found.reports]
    if found.wrong_references:
        lines.append(f"reference {fold(found.wrong_references)} computes wrongly")
    own = [node for node in found.wrong if node not in found.wrong_references]
    if own:
        what = "computes wrongly" if found.by_results else "fails in every replay, without a result"
        lines.append(f"{fold(own)} {what}")
    elif found.everywhere:
        lines.append(
            "no machine: the same steps on other machines go wrong as well, so code or data"
        )
    elif found.undecided:
        lines.append(f"not settled: {fold(found.undecided)} cannot be told apart")
    else:
        lines.append(_not_reproduced(found))
    return lines


def _method_sentence(report: MethodReport) -> str:
    lines = [f"{report.method}: {report.repetitions} times in {describe_duration(report.seconds)}"]
    lines += [f"wrong on {fold(report.wrong)}"] if report.wrong else []
    lines += [f"not decided between {fold(report.undecided)}"] if report.undecided else []
    for node, why in list(report.unmeasured.items())[:_NODES_SHOWN]:
        lines.append(f"{node} says nothing of itself ({why})")
    left = len(report.unmeasured) - _NODES_SHOWN
    lines += [f"nor do {left} more"] if left > 0 else []
    lines += [report.why] if report.why else []
    return ", ".join(lines)


def _not_reproduced(found: CorruptionSearch) -> str:
    done = [report for report in found.reports if report.repetitions and not report.undecided]
    local = [report for report in done if report.method is not Method.REPLAY]
    if not local:
        never = fold(found.unmeasured)
        return "not reproduced, and nothing is excluded" + (f" of {never}" if never else "")
    best = max(local, key=lambda report: report.repetitions)
    miss = found.order.miss
    more = round(best.repetitions * _HOUR_S / max(best.seconds, 1.0))
    sentence = (
        f"not reproduced: a fault in {least_chance(best.repetitions, miss):.2g} of all calls or"
        f" more is excluded but for {miss:.3g}"
    )
    if best.unmeasured:
        sentence += f" on the nodes that answered, and nothing of {fold(best.unmeasured)}"
    if found.unmeasured:
        sentence += (
            f"; {fold(found.unmeasured)} was never measured, and more time buys nothing of it"
            " before it answers"
        )
    sentence += (
        f"; another hour of {best.method} would be {more} more"
        f" and reach {least_chance(best.repetitions + more, miss):.2g}"
    )
    return sentence + ("; the budget is used up" if found.out_of_budget else "")
