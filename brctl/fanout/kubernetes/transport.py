"""`kubectl exec` as transport, for clusters whose nodes have no SSH.

A command runs in the node's own namespaces, entered from a privileged pod there: one of a
DaemonSet that the site has, or one that is made for as long as this transport is open. No node is
asked through a pod of another one. As over SSH, a command whose deadline has passed is left: what
runs on the node ends when it writes to nobody. One that is held ends with its input, which the
kubelet closes with the connection.
"""

import os
import secrets
import time

from brctl.fanout.client_process import ClientProcess, Endings
from brctl.fanout.contract import Streams
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.fanout.kubernetes.messages import (
    MARK_AND_HOLD,
    MARK_AND_RUN,
    beat_s,
    late,
    meaning,
    split_stderr,
)
from brctl.fanout.kubernetes.node_pods import NodePod
from brctl.fanout.kubernetes.pod_finder import DaemonSetPods, OwnPods, PodFinder
from brctl.fanout.streaming import beside
from brctl.library.config import NodePods, SshSettings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import BrctlError, UsageError
from brctl.model.inventory import Node

KUBELET_DIAL_S = 35.0
"""The API server dials a kubelet for 30 s; given up before, a dead node is not told from a slow API
server. A command that is held can wait so long."""

ENTER_NODE = (
    "nsenter", "--target", "1", "--mount", "--uts", "--ipc", "--net", "--pid", "--",
)  # fmt: skip
"""From a container of a pod with hostPID into process 1 of the node."""


class KubectlTransport:
    """See the head of this file; arguments only, no shell of ours ever sees them."""

    def __init__(self, ssh: SshSettings) -> None:
        chosen = ssh.node_pods
        self._start_s = ssh.connect_timeout_s + ssh.login_timeout_s
        self._kubectl = Kubectl(chosen.context, chosen.namespace)
        self._pods = open_finder(chosen, self._kubectl, ssh.connect_timeout_s)
        self._endings = Endings()

    async def run(self, node: Node, command: Command) -> CommandResult:
        """Run one command on one node; see `Transport.run`."""
        return await self._ask(node, command, None)

    async def stream(self, node: Node, command: Command, streams: Streams) -> CommandResult:
        """Stdout as it comes, stderr at the end: kubectl mixes its own words into it."""
        return await self._ask(node, command, streams)

    async def _ask(self, node: Node, command: Command, streams: Streams | None) -> CommandResult:
        started = time.perf_counter()
        mark = f"brctl-{secrets.token_hex(8)}"
        process = ClientProcess(mark.encode(), command.output_limit_bytes, streams)
        try:
            outcome, status, detail = await self._run(process, node, command, mark, streams)
        except BrctlError as exc:
            outcome, status, detail = Outcome.NOT_AVAILABLE, None, f"{node.name}: {exc}"
        finally:
            # The answer does not wait until kubectl has gone.
            self._endings.later(process.end())
        stderr, _, _ = split_stderr(bytes(process.output[2]), mark.encode())
        stderr = process.told(stderr)
        return CommandResult(
            node.name, outcome, status, bytes(process.output[1]), stderr,
            time.perf_counter() - started, detail,
        )  # fmt: skip

    async def close(self) -> None:
        """End what still runs here, and remove the pods that were made."""
        await self._endings.wait()
        await self._pods.close()

    async def _run(
        self,
        process: ClientProcess,
        node: Node,
        command: Command,
        mark: str,
        streams: Streams | None,
    ) -> tuple[Outcome, int | None, str]:
        held = streams is not None and streams.held
        for_s = None if held else self._start_s + command.deadline_s
        pod = await self._pods.pod_on(node.name, for_s)
        if not pod.ready:
            why = f"{node.name}: {f'pod {pod.name} ' if pod.name else ''}{pod.why}"
            return Outcome.NOT_AVAILABLE, None, why
        wrapped = (MARK_AND_HOLD, mark) if held else (
            MARK_AND_RUN, mark, f"{beat_s(command.deadline_s):g}"
        )  # fmt: skip
        try:
            await process.start((*await self._exec(pod), *wrapped, *command.argv), os.environ)
        except OSError as exc:
            why = f"{node.name}: kubectl cannot be run: {exc.strerror}"
            return Outcome.NOT_AVAILABLE, None, why
        start_s = max(self._start_s, KUBELET_DIAL_S) if held else self._start_s
        ending = self._answer(process, node, command, mark, start_s)
        if streams is not None:
            return await beside(process.send(streams.stdin()), ending)
        process.send_whole(command.stdin)
        return await ending

    async def _answer(
        self, process: ClientProcess, node: Node, command: Command, mark: str, start_s: float
    ) -> tuple[Outcome, int | None, str]:
        if not await process.begins_within(start_s):
            outcome, said = meaning(bytes(process.output[2]).decode("utf-8", "replace"))
            why = f"{node.name}: kubectl started nothing within {start_s:g} s: {said}"
            return outcome, None, why
        if not await process.ends_within(command.deadline_s):
            outcome, why = late(command.deadline_s, process.silent_s)
            return outcome, None, f"{node.name}: {why}"
        return self._ending(process, node, command, mark)

    def _ending(
        self, process: ClientProcess, node: Node, command: Command, mark: str
    ) -> tuple[Outcome, int | None, str]:
        limit = command.output_limit_bytes
        stderr, status, words = split_stderr(bytes(process.output[2]), mark.encode())
        if process.over_limit or len(stderr) > limit:
            return Outcome.OUTPUT_OVER_LIMIT, None, f"more than {limit} bytes of output"
        if status is not None:
            return Outcome.ANSWERED, status, ""
        self._pods.forget(node.name)
        outcome, detail = meaning(words)
        if process.begun.is_set():
            # The kubelet was reached, and words about it are the command's own.
            why = f"{node.name}: the connection was cut before the command ended: {detail}"
            return Outcome.NOT_AVAILABLE, None, why
        return outcome, None, f"{node.name}: {detail}"

    async def _exec(self, pod: NodePod) -> tuple[str, ...]:
        namespace = await self._kubectl.namespace()
        return (
            *self._kubectl.argv, "exec", f"--namespace={namespace}", f"--container={pod.container}",
            "--stdin", pod.name, "--", *ENTER_NODE, "/bin/sh", "-c",
        )  # fmt: skip


def open_finder(chosen: NodePods, kubectl: Kubectl, connect_s: float) -> PodFinder:
    """Who finds or makes the pods, as configured.

    Raises:
        UsageError: Neither a DaemonSet nor an image is named.
    """
    if chosen.daemonset:
        return DaemonSetPods(kubectl, chosen.daemonset, chosen.container)
    if chosen.image:
        return OwnPods(kubectl, chosen.image, connect_s)
    hint = "kubernetes: {node_pods: {daemonset: NAME, namespace: NAMESPACE}}, or {image: IMAGE}"
    raise UsageError("the transport kubectl needs pods on the nodes", hint=hint)
