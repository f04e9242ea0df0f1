"""notify.page: wake a person; the run's own page of the same ending is then not sent."""

from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.model.notice import PageSeverity
from brctl.model.runs.playbook import Arguments
from brctl.notify.notifier import PAGING, Delivery, DeliveryState
from brctl.view.notices.notice import page_notice

NOBODY = "no notifier configured"


class NotifyPage(ReadOnly):
    """To every sink that pages, whatever its `when` says: the playbook asks for it."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        severity_text = arguments.text(args, "severity", PageSeverity.CRITICAL.value)
        if severity_text not in list(PageSeverity):
            raise ActionFailed(
                f"`severity` must be one of {', '.join(PageSeverity)}, not {severity_text!r}"
            )
        if not context.notifier.configured:
            return ActionResult(changed=False, say=NOBODY)
        summary = arguments.text(args, "summary")
        notice = page_notice(
            context.run.facts(), context.clock.now(), PageSeverity(severity_text), summary
        )
        return delivery_result(await context.notifier.notify_async(notice, PAGING))


def delivery_result(deliveries: Sequence[Delivery]) -> ActionResult:
    """Who was told, as a step's answer.

    Raises:
        ActionFailed: A sink could not be told; the others were.
    """
    failed = [f"{d.sink}: {d.why}" for d in deliveries if d.state is DeliveryState.FAILED]
    if failed:
        raise ActionFailed("; ".join(failed))
    outcomes = ", ".join(f"{d.sink} {d.state.value}" for d in deliveries)
    return ActionResult(changed=False, say=outcomes or NOBODY)
