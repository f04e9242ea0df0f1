"""kubectl exec as transport: the real kubectl against a stand-in that runs commands in pods."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from brctl.fanout.choose import open_transport
from brctl.fanout.contract import Transport
from brctl.fanout.kubernetes import pod_finder
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.fanout.kubernetes.messages import MARK_AND_RUN, late, meaning, split_stderr
from brctl.fanout.kubernetes.node_pods import NodePod, pods_by_node
from brctl.fanout.kubernetes.pod_finder import LABEL, manifest
from brctl.fanout.kubernetes.transport import KubectlTransport
from brctl.library.config import NodePods, SshSettings
from brctl.model.command import Command, Outcome
from brctl.model.errors import UnreachableError, UsageError
from brctl.model.inventory import Node
from tests.backends.kubernetes.site import until
from tests.fakes.kube.cluster import NAMESPACE, KubeCluster, kube_cluster, no_kubectl
from tests.timeouts import TIMEOUT_S

needs_kubectl = pytest.mark.skipif(no_kubectl(), reason="not installed: kubectl")
STATUS = Command(("sh", "-c", "echo on $HOSTNAME; exit 3"))


@pytest.fixture(scope="module")
def module_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeCluster]:
    with kube_cluster(tmp_path_factory.mktemp("kube"), ["n1", "n2"]) as cluster:
        yield cluster


@pytest.fixture
def cluster(module_cluster: KubeCluster) -> KubeCluster:
    module_cluster.forget()
    return module_cluster


def opened(**pods: str) -> Transport:
    settings = SshSettings(
        transport="kubectl",
        connect_timeout_s=TIMEOUT_S,
        node_pods=NodePods(**pods),
    )
    return open_transport(settings)


def node(name: str) -> Node:
    return Node(name, "192.0.2.1")


def test_only_a_status_behind_our_own_mark_is_the_commands() -> None:
    """A connection that was cut leaves none, whatever kubectl itself exits with."""
    whole = b"warn: x\nmark\nmine\nno newline\nmark 3\ncommand terminated with exit code 3\n"
    assert split_stderr(whole, b"mark") == (
        b"mine\nno newline", 3, "warn: x\ncommand terminated with exit code 3\n"
    )  # fmt: skip
    assert split_stderr(b"mark\nmine\n", b"mark") == (b"mine\n", None, "mine\n")
    assert split_stderr(b"mark\n\nmark 9999\n", b"mark")[1] is None
    assert split_stderr(b"error: x\n", b"mark") == (b"", None, "error: x\n")
    beaten = b"mark\nmi\nmark .\nne\n\nmark .\n\nmark 3\n\nmark .\n"
    assert split_stderr(beaten, b"mark") == (b"mine\n", 3, "")


@pytest.mark.parametrize(
    ("deadline_s", "silent_s", "outcome"),
    [
        (30.0, 8.0, Outcome.COMMAND_TIMED_OUT),
        (30.0, 9.0, Outcome.NOT_AVAILABLE),
        (3600.0, 29.0, Outcome.COMMAND_TIMED_OUT),
        (3600.0, 30.0, Outcome.NOT_AVAILABLE),
        (2.0, 2.0, Outcome.COMMAND_TIMED_OUT),
    ],
)
def test_a_deadline_counts_against_the_node_while_its_beats_come(
    deadline_s: float, silent_s: float, outcome: Outcome
) -> None:
    """Without them nobody knows whether it is the command or a connection that hangs."""
    assert late(deadline_s, silent_s)[0] is outcome


def test_a_command_that_is_wrapped_keeps_its_words_its_input_and_its_status() -> None:
    """Whatever beats come in between, and none after its end, which waits for nothing."""
    argv = ["/bin/sh", "-c", MARK_AND_RUN, "mark", "0.05"]
    script = "printf err >&2; cat; exit 7"
    with subprocess.Popen(
        [*argv, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as wrapped:
        assert wrapped.stdin is not None
        assert wrapped.stderr is not None
        said = b""
        while b"mark ." not in said and (piece := os.read(wrapped.stderr.fileno(), 4096)):
            said += piece
        # It reads its input only now, and so was still there when the beat came.
        wrapped.stdin.write(b"in")
        output, rest = wrapped.communicate(timeout=TIMEOUT_S)
    assert (wrapped.returncode, output) == (7, b"in")
    assert b"mark ." in said
    assert split_stderr(said + rest, b"mark")[:2] == (b"err", 7)


def test_the_end_of_a_wrapped_command_waits_for_no_beat() -> None:
    """A sleep that held a stream open would keep the connection."""
    argv = ["/bin/sh", "-c", MARK_AND_RUN, "mark", "600", "true"]
    wrapped = subprocess.Popen(argv, stderr=subprocess.PIPE, start_new_session=True)
    try:
        assert b"mark 0" in wrapped.communicate(timeout=TIMEOUT_S)[1]
    finally:
        # What sleeps for the next beat is there a little longer, if it had begun.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(wrapped.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("Error from server: error dialing backend: dial tcp 10.0.0.3:10250: connect: connection"
         " refused", Outcome.REFUSED),
        ("Error from server: error dialing backend: dial tcp 10.0.0.3:10250: connect: no route to"
         " host", Outcome.UNREACHABLE),
        ("Error from server: error dialing backend: dial tcp 10.0.0.3:10250: i/o timeout",
         Outcome.CONNECT_TIMED_OUT),
        ('Error from server (Forbidden): pods "x" is forbidden', Outcome.AUTHENTICATION_FAILED),
        ('Error from server (NotFound): pods "x" not found', Outcome.NOT_AVAILABLE),
        ("The connection to the server 10.0.0.1:6443 was refused", Outcome.NOT_AVAILABLE),
        ("nsenter: cannot open /proc/1/ns/ipc: Permission denied\n"
         "command terminated with exit code 1", Outcome.NOT_AVAILABLE),
        ("", Outcome.NOT_AVAILABLE),
    ],
)  # fmt: skip
def test_only_the_kubelets_silence_is_said_of_a_node(words: str, outcome: Outcome) -> None:
    """That a pod, the API server or a right is missing is no fault of the machine."""
    found, detail = meaning(words)
    assert found is outcome
    assert "terminated" not in detail


def test_of_a_nodes_pods_the_one_that_runs_is_taken() -> None:
    """Pods of others, and names that kubectl would read as an option, are passed over."""
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    items = [
        _pod("new", "n5", "Pending"),
        _pod("ended", "n5", "Failed"),
        _pod("old", "n1", "Failed"),
        _pod("good", "n1", "Running"),
        _pod("other", "n2", "Running", owner="else"),
        _pod("-x", "n3", "Running"),
        _pod("late", "n4", "Pending", state=waiting),
    ]
    found = pods_by_node([*items, {"metadata": {"name": "no-spec"}}], "agent", "")
    assert found["n1"] == NodePod("good", "main", ready=True)
    assert sorted(found) == ["n1", "n4", "n5"]
    assert found["n5"].name == "new"
    assert (found["n4"].hopeless, found["n4"].why) == (
        True,
        "is Pending: ImagePullBackOff: no such image",
    )


def _pod(
    name: str, on: str, phase: str, owner: str = "agent", state: object = None
) -> dict[str, object]:
    return {
        "metadata": {"name": name, "ownerReferences": [{"kind": "DaemonSet", "name": owner}]},
        "spec": {"nodeName": on, "containers": [{"name": "main"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "state": state or {}}]},
    }


AGENT = _pod("agent-n1", "n1", "Running")


@pytest.mark.parametrize(
    ("does", "connect_s", "detail"),
    [
        ("exec sleep 600", 3.0, "kubectl started nothing within 3 s: kubectl said nothing"),
        ("""for word; do case "$word" in brctl-*) echo "$word" >&2; esac; done
            echo error dialing backend: connection refused >&2""",
         TIMEOUT_S, "the connection was cut before the command ended"),
    ],
)  # fmt: skip
async def test_an_exec_that_breaks_or_hangs_says_nothing_of_the_node(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: str, connect_s: float, detail: str
) -> None:
    """Nor do the words of a command that ran there, whatever they look like."""
    (tmp_path / "pods").write_text(json.dumps({"metadata": {}, "items": [AGENT]}))
    program = tmp_path / "kubectl"
    listed = f"exec cat {tmp_path}/pods"
    program.write_text(f'#!/bin/sh\ncase "$1" in exec) {does} ;; *) {listed} ;; esac\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    pods = NodePods(daemonset="agent", namespace=NAMESPACE)
    transport = KubectlTransport(
        SshSettings(connect_timeout_s=connect_s, login_timeout_s=0.0, node_pods=pods)
    )
    answer = await transport.run(node("n1"), STATUS)
    await transport.close()
    assert (answer.outcome, answer.exit_status) == (Outcome.NOT_AVAILABLE, None)
    assert detail in answer.detail


class _DeadServer(Kubectl):
    """An API server that does not answer, and how often it was asked."""

    asked = 0

    async def get(self, path: str, **query: str) -> Object | None:
        self.asked += 1
        await asyncio.sleep(0)
        raise UnreachableError(f"no answer for {path}")


async def test_a_dead_api_server_is_waited_for_once_for_all_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them is told; one after another they would wait for minutes."""
    monkeypatch.setattr(pod_finder, "LOOK_AGE_S", TIMEOUT_S)
    server = _DeadServer(namespace=NAMESPACE)
    finder = pod_finder.DaemonSetPods(server, "agent", "")
    asked = (finder.pod_on(f"n{i}", 1.0) for i in range(20))
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in told} == {UnreachableError}
    assert server.asked == 1
    monkeypatch.setattr(pod_finder, "LOOK_AGE_S", -1.0)
    with pytest.raises(UnreachableError):
        await finder.pod_on("n1", 1.0)
    assert server.asked == 2


class _PodsApi(Kubectl):
    """An API server whose pods run as soon as they are made; it can be told to keep them."""

    def __init__(self) -> None:
        super().__init__(namespace=NAMESPACE)
        self.items: list[Object] = []
        self.keeps = False

    async def get(self, path: str, **query: str) -> Object | None:
        return {"metadata": {}, "items": list(self.items)}

    async def post(self, path: str, value: Object) -> Object:
        self.items.append({**value, "status": {"phase": "Running"}})
        return value

    async def delete(self, path: str, **options: object) -> None:
        if self.keeps:
            raise UnreachableError("no answer")
        self.items = [i for i in self.items if i["metadata"]["name"] != path.rpartition("/")[2]]

    def lives(self) -> list[int]:
        return [item["spec"]["activeDeadlineSeconds"] for item in self.items]


async def test_a_pod_of_our_own_lives_longer_than_its_command_may_take() -> None:
    """One that would end before is not used for it, and is left to what runs in it."""
    server = _PodsApi()
    finder = pod_finder.OwnPods(server, "busybox", TIMEOUT_S)
    short = await finder.pod_on("n1", 60.0)
    assert (await finder.pod_on("n1", 60.0)).name == short.name
    long = await finder.pod_on("n1", 7200.0)
    assert [await finder.pod_on("n1", 60.0), len(server.items)] == [long, 2]
    assert server.lives()[0] == pod_finder.LIFE_S
    assert server.lives()[1] > 7200
    await finder.close()
    assert server.items == []


async def test_a_held_connection_taken_up_again_finds_the_pod_it_had() -> None:
    """A day is all that is left behind of a watcher that is killed, and one pod a node."""
    server = _PodsApi()
    finder = pod_finder.OwnPods(server, "busybox", TIMEOUT_S)
    names = {(await finder.pod_on("n1", None)).name for _ in range(3)}
    assert len(names) == 1
    assert server.lives() == [pod_finder.HELD_LIFE_S]
    await finder.close()


async def test_a_pod_of_our_own_that_has_ended_is_removed_before_another_is_made() -> None:
    """It would hide the new one."""
    server = _PodsApi()
    finder = pod_finder.OwnPods(server, "busybox", TIMEOUT_S)
    first = await finder.pod_on("n1", 60.0)
    server.items[0]["status"]["phase"] = "Failed"
    finder.forget("n1")
    second = await finder.pod_on("n1", 60.0)
    assert second.ready
    assert [item["metadata"]["name"] for item in server.items] == [second.name]
    assert second.name != first.name
    await finder.close()


async def test_pods_that_could_not_be_removed_are_said(caplog: pytest.LogCaptureFixture) -> None:
    """How many, and the label to find them by."""
    server = _PodsApi()
    finder = pod_finder.OwnPods(server, "busybox", TIMEOUT_S)
    await finder.pod_on("n1", 60.0)
    server.keeps = True
    await finder.close()
    assert f"not removed: 1 of 1 pods, label {LABEL}=" in caplog.text


def test_without_pods_to_use_or_make_the_configuration_is_refused() -> None:
    """The words to write are in the error."""
    with pytest.raises(UsageError) as refused:
        opened()
    assert "daemonset" in str(refused.value.hint)


@needs_kubectl
async def test_stand_in_each_node_is_entered_through_its_own_pod(cluster: KubeCluster) -> None:
    """A node that no pod stands for, or whose kubelet is gone, is said to be just that."""
    cluster.add_daemonset("agent")
    cluster.power_off("n2")
    transport = opened(daemonset="agent")
    names = ("n1", "n2", "n3", "--all", "$(touch x)")
    answers = await asyncio.gather(*(transport.run(node(name), STATUS) for name in names))
    await transport.close()
    assert (answers[0].exit_status, answers[0].stdout) == (3, b"on n1\n")
    assert answers[1].outcome is Outcome.UNREACHABLE
    for answer in answers[2:]:
        assert (answer.outcome, answer.exit_status) == (Outcome.NOT_AVAILABLE, None)
        assert "no pod of DaemonSet agent there" in answer.detail


@needs_kubectl
async def test_stand_in_a_cut_connection_is_never_a_success(
    cluster: KubeCluster, tmp_path: Path
) -> None:
    """What was asked has not ended; once a pod is there again, the node answers."""
    cluster.add_daemonset("agent")
    transport, begun = opened(daemonset="agent"), tmp_path / "begun"
    script = f"echo half an ans; touch {begun}; exec sleep 600"
    running = asyncio.create_task(transport.run(node("n1"), Command(("sh", "-c", script))))

    async def has_begun() -> bool:
        return begun.exists()

    await until(has_begun)
    cluster.server.cut_executions()
    answer = await running
    assert (answer.outcome, answer.exit_status) == (Outcome.NOT_AVAILABLE, None)
    assert answer.detail
    cluster.store.drop("pods", NAMESPACE, "agent-n1")
    cluster.store.drop("pods", NAMESPACE, "agent-n2")
    gone = await transport.run(node("n1"), STATUS)
    assert gone.outcome is Outcome.NOT_AVAILABLE
    await transport.close()
    cluster.add_daemonset("agent")
    transport = opened(daemonset="agent")
    assert (await transport.run(node("n1"), STATUS)).exit_status == 3
    await transport.close()


@needs_kubectl
async def test_stand_in_pods_of_our_own_are_there_for_one_command(cluster: KubeCluster) -> None:
    """Made where a node is asked, removed at the end, with what a killed one left behind."""
    store = cluster.store
    left = manifest("brctl-node-old", "n2", "busybox", "gone")
    store.create("pods", NAMESPACE, {**left, "status": {"phase": "Failed"}})
    transport = opened(image="busybox")
    answers = [await transport.run(node(name), STATUS) for name in ("n1", "n1")]
    assert [answer.stdout for answer in answers] == [b"on n1\n"] * 2
    (made,) = cluster.pods()
    assert made["metadata"]["labels"][LABEL]
    assert made["spec"]["nodeName"] == "n1"
    assert "brctl-node-old" not in json.dumps(made)
    await transport.close()
    assert all("deletionTimestamp" in pod["metadata"] for pod in cluster.pods())


@needs_kubectl
async def test_stand_in_what_the_cluster_refuses_is_said_in_its_words(cluster: KubeCluster) -> None:
    """A pod that may not enter the node, and a right that is missing."""
    cluster.add_daemonset("agent", privileged=False)
    transport = opened(daemonset="agent")
    closed = await transport.run(node("n1"), STATUS)
    assert closed.outcome is Outcome.NOT_AVAILABLE
    assert "/proc/1/ns/ipc: Permission denied" in closed.detail
    await transport.close()
    cluster.server.denied.add(("create", "pods"))
    transport = opened(image="busybox")
    refused = await transport.run(node("n1"), STATUS)
    assert refused.outcome is Outcome.NOT_AVAILABLE
    assert "cannot create" in refused.detail
    await transport.close()
