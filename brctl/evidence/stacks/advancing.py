"""What stacks say of a job that takes steps: where ranks work, and nothing against anybody."""

from dataclasses import replace

from brctl.model.jobs.hang import StackAnalysis


def at_work(result: StackAnalysis, step: int | None) -> StackAnalysis:
    """The same stacks without outliers: ranks at work stand in different places by themselves."""
    where = f" (step {step})" if step is not None else ""
    reason = f"the job takes steps{where}: its ranks work in different places, none is suspected"
    return replace(
        result, outliers=(), group=None, candidates=(), suspect_ranks=(), suspect_nodes=(),
        reason=reason,
    )  # fmt: skip
