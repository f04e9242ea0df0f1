"""The callback plugin that tells brctl, line by line, what became of each host.

ansible-core has no JSON output of its own, and the text it prints is for people. The people's
output stays as the site configured it.
"""

NAME = "brctl_events"
EVENTS_VARIABLE = "BRCTL_ANSIBLE_EVENTS"

# RUNS INSIDE ANSIBLE, of any version from 2.12 on.
CALLBACK = '''\
import json, os
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: brctl_events
type: notification
short_description: what became of each host, for brctl
description: one JSON object a line
"""

class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "brctl_events"
    CALLBACK_NEEDS_ENABLED = True
    left = 4000

    def _tell(self, **row):
        with open(os.environ["BRCTL_ANSIBLE_EVENTS"], "a") as stream:
            stream.write(json.dumps(row) + "\\n")

    def _task(self, event, result):
        if self.left <= 0:
            return
        self.left -= 1
        host = getattr(result, "host", None) or result._host
        task = getattr(result, "task", None) or result._task
        said = getattr(result, "result", None) or result._result
        silent = said.get("_ansible_no_log") or getattr(task, "no_log", False)
        text = "hidden by no_log" if silent else str(said.get("msg") or said.get("stderr") or "")
        self._tell(event=event, host=host.get_name(), task=task.get_name()[:120], msg=text[:300])

    def v2_runner_on_ok(self, result):
        said = getattr(result, "result", None) or result._result
        if said.get("changed"):
            self._task("changed", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._task("ignored" if ignore_errors else "failed", result)

    def v2_runner_on_unreachable(self, result):
        self._task("unreachable", result)

    def v2_playbook_on_stats(self, stats):
        hosts = {host: stats.summarize(host) for host in stats.processed}
        self._tell(event="stats", hosts=hosts)
'''
