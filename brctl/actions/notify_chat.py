"""notify.chat: a line in chat, the playbook's own words or how the run ends."""

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.actions.notify_page import NOBODY, delivery_result
from brctl.model.runs.playbook import Arguments
from brctl.notify.notifier import CHAT
from brctl.view.notices.notice import chat_notice

TEMPLATES = ("run_summary",)


class NotifyChat(ReadOnly):
    """To every sink people chat in; `channel` needs a bot token."""

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        template = arguments.text(args, "template", TEMPLATES[0])
        if template not in TEMPLATES:
            raise ActionFailed(f"`template` must be {TEMPLATES[0]}, not {template!r}")
        if not context.notifier.configured:
            return ActionResult(changed=False, say=NOBODY)
        channel, text = (arguments.text(args, key, "") for key in ("channel", "text"))
        notice = chat_notice(context.run.facts(), context.clock.now(), channel, text)
        return delivery_result(await context.notifier.notify_async(notice, CHAT))
