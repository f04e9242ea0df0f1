"""Pull a job's images onto nodes that may have to take its ranks, by a pod that does nothing there.

A Job makes all of its pods itself and takes none that is there, so no process can wait to become a
rank. Its image, which is most of what a first start on a node waits for, can be there before.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence

from brctl.backends.contract import ImagePull
from brctl.backends.kubernetes.containers import rows_of
from brctl.backends.kubernetes.jobs import Workload, templates
from brctl.fanout.kubernetes.kubectl import Kubectl, Object
from brctl.fanout.kubernetes.pod_finder import pods_path
from brctl.model.errors import BrctlError, UnreachableError

LABEL = "brctl.dev/image-pull"
DEADLINE_S = 1200
"""Images of 20 to 40 GB over one link of the node."""

POLL_S = 2.0
_HOPELESS = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_NEEDED_TO_PULL = ("imagePullSecrets", "serviceAccountName", "runtimeClassName")
_MESSAGE_LIMIT = 200


class ImagePulls:
    """See the head of this file."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self.deadline_s = float(DEADLINE_S)

    async def pull(self, found: Workload, nodes: Sequence[str]) -> Mapping[str, ImagePull]:
        """What became of it on each node; nobody has an answer for a job without containers."""
        if not images_of(found):
            return {}
        path, session = await pods_path(self._kubectl), secrets.token_hex(8)
        names = {node: f"brctl-pull-{secrets.token_hex(6)}" for node in nodes}
        made = await asyncio.gather(
            *(self._make(path, manifest(names[n], n, session, found)) for n in nodes)
        )
        done = {n: ImagePull(None, why) for n, why in zip(nodes, made, strict=True) if why}
        try:
            waiting = [node for node in nodes if node not in done]
            return {**done, **await self._waited(path, session, waiting)}
        finally:
            await asyncio.gather(*(self._remove(f"{path}/{names[n]}") for n in nodes))

    async def _waited(
        self, path: str, session: str, nodes: Sequence[str]
    ) -> Mapping[str, ImagePull]:
        clock, done = asyncio.get_running_loop().time, dict[str, ImagePull]()
        began = clock()
        while len(done) < len(nodes) and clock() - began < self.deadline_s:
            for pod in await self._pods(path, session):
                ended = settled(pod, clock() - began)
                if ended is not None:
                    done.setdefault(str(pod["spec"].get("nodeName")), ended)
            if len(done) < len(nodes):
                await asyncio.sleep(POLL_S)
        late = ImagePull(None, f"not pulled within {self.deadline_s:.0f} s")
        return {node: done.get(node, late) for node in nodes}

    async def _pods(self, path: str, session: str) -> Sequence[Object]:
        """None while the API server does not answer: kubelets go on pulling."""
        try:
            answer = await self._kubectl.get(path, labelSelector=f"{LABEL}={session}")
        except UnreachableError:
            return ()
        return (answer or {}).get("items") or ()

    async def _make(self, path: str, pod: Object) -> str:
        try:
            await self._kubectl.post(path, pod)
        except BrctlError as error:
            return str(error)[:_MESSAGE_LIMIT]
        return ""

    async def _remove(self, path: str) -> None:
        """One that cannot be removed has ended by then, or does so by itself."""
        try:
            await self._kubectl.delete(path, gracePeriodSeconds=1)
        except BrctlError:
            return


def images_of(found: Workload) -> tuple[str, ...]:
    """Every image of the job's pods, once."""
    rows = [
        row
        for template in templates(found.value)
        for key in ("initContainers", "containers")
        for row in rows_of(template["spec"].get(key))
    ]
    return tuple(dict.fromkeys(str(row["image"]) for row in rows if row.get("image")))


def settled(pod: Object, seconds: float) -> ImagePull | None:
    """How the pull ended; None while it goes on. What the program then does is of no matter."""
    status = pod.get("status") or {}
    rows = rows_of(status.get("containerStatuses"))
    wanted = len(rows_of(pod["spec"].get("containers")))
    if len(rows) == wanted and all(row.get("imageID") for row in rows):
        return ImagePull(seconds)
    waiting = [(row.get("state") or {}).get("waiting") or {} for row in rows]
    stuck = next((state for state in waiting if state.get("reason") in _HOPELESS), None)
    if stuck is None and status.get("phase") == "Failed":
        stuck = status
    if stuck is None:
        return None
    why = f"{stuck.get('reason') or 'Failed'}: {stuck.get('message') or ''}".strip(": ")
    return ImagePull(None, why[:_MESSAGE_LIMIT])


def manifest(name: str, node: str, session: str, found: Workload) -> Object:
    """A pod of the job's images; put there without the scheduler, for a cordoned node, too."""
    spec: Object = next(iter(templates(found.value)))["spec"]
    containers = [
        {"name": f"image-{i}", "image": image, "command": ["true"]}
        for i, image in enumerate(images_of(found))
    ]
    labels = {"app.kubernetes.io/managed-by": "brctl", LABEL: session}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            **{key: spec[key] for key in _NEEDED_TO_PULL if key in spec},
            "nodeName": node,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": DEADLINE_S,
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": containers,
        },
    }
