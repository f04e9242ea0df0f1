"""The table of verbs: what `uses:` in a playbook runs; their arguments: `playbook.verbs`."""

import sys
from collections.abc import Mapping

from brctl.actions.ansible.playbook import AnsiblePlaybook
from brctl.actions.burnin_run import BurninRun
from brctl.actions.check_run import CheckRun
from brctl.actions.contract import VerbImplementation
from brctl.actions.corruption_locate import CorruptionLocate
from brctl.actions.evidence_capture import EvidenceCapture
from brctl.actions.incident_note import IncidentNote
from brctl.actions.incident_timeline import IncidentTimeline
from brctl.actions.job.check_order import JobCheckOrder
from brctl.actions.job.ckpt_select import CkptSelect
from brctl.actions.job.ckpt_verify import CkptVerify
from brctl.actions.job.hot_update import JobHotUpdate
from brctl.actions.job.order_ranks import JobOrderRanks
from brctl.actions.job.replace_nodes import JobReplaceNodes
from brctl.actions.job.replay import JobReplay
from brctl.actions.job.restart import JobRestart
from brctl.actions.job.rollback_code import JobRollbackCode
from brctl.actions.job.stop import JobStop
from brctl.actions.job.take_order import JobTakeOrder
from brctl.actions.job.verify_code import JobVerifyCode
from brctl.actions.job.wait_progress import JobWaitProgress
from brctl.actions.nccl_bisect import NcclBisect
from brctl.actions.nccl_test import NcclTest
from brctl.actions.node.cordon import NodeCordon
from brctl.actions.node.drain import NodeDrain
from brctl.actions.node.gpu_reset import GpuReset
from brctl.actions.node.label import NodeLabel
from brctl.actions.node.reboot import NodeReboot
from brctl.actions.node.uncordon import NodeUncordon
from brctl.actions.notify_chat import NotifyChat
from brctl.actions.notify_page import NotifyPage
from brctl.actions.report_table import ReportTable
from brctl.actions.script import Script
from brctl.actions.stacks_dump import StacksDump
from brctl.actions.standby.acquire import StandbyAcquire
from brctl.actions.standby.add import StandbyAdd
from brctl.actions.standby.release import StandbyRelease
from brctl.actions.ticket_create import TicketCreate
from brctl.model.runs.playbook import Step

ACTIONS: Mapping[str, VerbImplementation] = {
    "ansible.playbook": AnsiblePlaybook(),
    "check.run": CheckRun(),
    "stacks.dump": StacksDump(),
    "node.reboot": NodeReboot(),
    "nccl.test": NcclTest(),
    "gpu.reset": GpuReset(),
    "ckpt.verify": CkptVerify(),
    "burnin.run": BurninRun(),
    "nccl.bisect": NcclBisect(),
    "corruption.locate": CorruptionLocate(),
    "ckpt.select": CkptSelect(),
    "evidence.capture": EvidenceCapture(),
    "incident.note": IncidentNote(),
    "incident.timeline": IncidentTimeline(),
    "job.hot_update": JobHotUpdate(),
    "job.check_order": JobCheckOrder(),
    "job.order_ranks": JobOrderRanks(),
    "job.take_order": JobTakeOrder(),
    "job.replace_nodes": JobReplaceNodes(),
    "job.replay": JobReplay(),
    "job.restart": JobRestart(),
    "job.rollback_code": JobRollbackCode(),
    "job.stop": JobStop(),
    "job.verify_code": JobVerifyCode(),
    "job.wait_progress": JobWaitProgress(),
    "node.cordon": NodeCordon(),
    "node.drain": NodeDrain(),
    "node.label": NodeLabel(),
    "node.uncordon": NodeUncordon(),
    "notify.chat": NotifyChat(),
    "notify.page": NotifyPage(),
    "report.table": ReportTable(),
    "standby.acquire": StandbyAcquire(),
    "standby.add": StandbyAdd(),
    "standby.release": StandbyRelease(),
    "ticket.create": TicketCreate(),
}


def action_of(step: Step, name: str) -> VerbImplementation:
    """The program of a step: its verb, or the site's script under the name of this instance."""
    return ACTIONS[step.uses] if step.uses else Script(step, name)


def about_verbs() -> dict[str, str]:
    """One sentence for each verb: the head of its module."""
    heads = {name: sys.modules[type(verb).__module__].__doc__ for name, verb in ACTIONS.items()}
    return {
        name: (head or "").split("\n")[0].removeprefix(f"{name}: ") for name, head in heads.items()
    }
