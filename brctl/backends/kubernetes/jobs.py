"""Read and change Job and JobSet objects: pure, no kubectl here.

What may change in a suspended Job, and why a finished one is made anew, stands in decision 0090.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from brctl.backends.kubernetes.containers import rows_of
from brctl.backends.kubernetes.kinds import (
    JOB,
    JOBSET,
    VOLCANO,
    JobKind,
    is_suspended,
    parts_of,
    volcano_phase,
)
from brctl.backends.kubernetes.marks import JOB as JOB_LABEL
from brctl.backends.kubernetes.marks import PREFIX, labels_of, marked, notes_of
from brctl.backends.kubernetes.pod_environment import (
    CHECKPOINT,
    CODE_DIR,
    annotations,
    hears,
    with_variables,
)
from brctl.fanout.kubernetes.kubectl import Object
from brctl.model.errors import ConfigError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.jobs.job import Job

INCARNATION, NODES = PREFIX + "incarnation", PREFIX + "nodes"
QUEUE = "kueue.x-k8s.io/queue-name"

_ENDED = ("Complete", "Completed", "Succeeded", "Failed", "Terminated")
"""Conditions of every kind, and phases of Volcano."""

_OF_THE_SERVER = (
    "controller-uid", "job-name", "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workload:
    """A Job, a JobSet or an object of another kind that carries brctl's label.

    Attributes:
        path: Where the API serves it.
        parts: Name, jobs and pods of each replicated job; a plain Job is one part named "".
    """

    value: Object
    path: str
    parts: tuple[tuple[str, int, int], ...]
    kind: JobKind = JOB

    @property
    def name(self) -> str:
        return str(self.value["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.value["metadata"]["uid"])

    @property
    def suspended(self) -> bool:
        return is_suspended(self.kind, self.value)

    @property
    def ended(self) -> str:
        """Why no controller makes pods for it any more; "" while one does."""
        rows = self.value.get("status", {}).get("conditions") or ()
        for row in rows:
            if row.get("type") in _ENDED and row.get("status") == "True":
                return f"{row['type']}: {row.get('message') or row.get('reason', '')}"
        phase = volcano_phase(self.value) if self.kind is VOLCANO else ""
        return phase if phase in _ENDED else ""

    @property
    def restarts(self) -> int:
        """How often the failure policy of a JobSet has made all of its pods anew."""
        count = self.value.get("status", {}).get("restarts")
        return count if self.kind is JOBSET and isinstance(count, int) else 0

    @property
    def incarnation(self) -> str:
        return notes_of(self.value).get(INCARNATION, "")

    @property
    def remembered(self) -> tuple[str, ...]:
        """The nodes brctl wants, or found, it on; in the order of the pods."""
        try:
            names = read_foreign_json(notes_of(self.value).get(NODES, "[]"))
        except ForeignJsonError:
            return ()
        return tuple(map(str, names)) if isinstance(names, list) else ()

    @property
    def pods(self) -> int:
        return sum(jobs * pods for _, jobs, pods in self.parts)

    @property
    def hears_checkpoint(self) -> bool:
        """Whether some container is told which checkpoint to start from."""
        return any(hears(template, CHECKPOINT) for template in templates(self.value))

    @property
    def hears_code(self) -> bool:
        """Whether some container is told which release to start from."""
        return any(hears(template, CODE_DIR) for template in templates(self.value))

    def misses(self, job: Job, checkpoint: str) -> str:
        """What a start has to tell its containers and cannot; "" for nothing."""
        unheard = {
            "a checkpoint": checkpoint and not self.hears_checkpoint,
            "a release": job.code is not None and not self.hears_code,
        }
        return " or ".join(what for what, is_so in unheard.items() if is_so)

    @property
    def vanishes(self) -> bool:
        """Whether the cluster deletes it, with its manifest, some time after it has ended."""
        specs = (self.value["spec"], *_job_specs(self.value))
        return any(spec.get("ttlSecondsAfterFinished") is not None for spec in specs)

    @property
    def queue(self) -> str:
        """The Kueue queue that decides when it runs; "" for none."""
        return labels_of(self.value).get(QUEUE, "")

    @property
    def tolerations(self) -> tuple[Object, ...]:
        """Taints its pods live with."""
        return tuple(
            row for t in templates(self.value) for row in rows_of(t["spec"].get("tolerations"))
        )

    def order(self, pod: Object) -> int | None:
        """The pod's place in rank order; None for a pod that has none."""
        marks, before = {**notes_of(pod), **labels_of(pod)}, 0
        index, part = _whole(marks.get(self.kind.index, "")), marks.get(self.kind.part, "")
        for name, jobs, pods in self.parts:
            if name == part and index is not None:
                number = _whole(marks.get(self.kind.number, "0"))
                return before + number * pods + index if number is not None else None
            before += jobs * pods
        return None


def _whole(text: str) -> int | None:
    """A number that somebody wrote as text; None when it counts nothing."""
    return int(text) if text.isdecimal() and len(text) <= 9 else None


def read_workload(value: Object, path: str, job: Job, kind: JobKind = JOB) -> Workload:
    """The workload of a declared job.

    Raises:
        ConfigError: Its pods cannot be the nodes that job.yaml lists.
    """
    parts = tuple(parts_of(kind, value["spec"], len(job.nodes)))
    found = Workload(value, path, parts, kind)
    where = f"{kind.name} {found.name}"
    for spec in _job_specs(value):
        if spec.get("completionMode") != "Indexed":
            raise ConfigError(f"{where} is not Indexed: which pod is which rank nobody can say")
        if spec.get("parallelism", 1) != spec.get("completions"):
            raise ConfigError(f"{where}: parallelism and completions differ; ranks start together")
    if found.pods != len(job.nodes):
        raise ConfigError(f"{where} has {found.pods} pods, job {job.name} {len(job.nodes)} nodes")
    return found


def on_nodes(workload: Workload, nodes: Sequence[str]) -> Object:
    """The object with the nodes of its pods written down, in their order."""
    return marked(workload.value, {}, {NODES: json.dumps(list(nodes))})


def suspended(workload: Workload, nodes: Sequence[str]) -> Object:
    """The object, suspended, with the nodes its pods are on written down."""
    new = on_nodes(workload, nodes)
    new["spec"]["suspend"] = True
    return new


def released(workload: Workload, job: Job, checkpoint: str, incarnation: str) -> Object:
    """The object, unsuspended, its pods bound to the job's nodes and told where to start from."""
    mark = {INCARNATION: incarnation}
    new = marked(workload.value, {}, {**mark, NODES: json.dumps(list(job.nodes))})
    for template in templates(new):
        meta = template.setdefault("metadata", {})
        told = {**mark, **annotations(job, checkpoint)}
        meta["annotations"] = {**(meta.get("annotations") or {}), **told}
        spec = template["spec"]
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), JOB_LABEL: job.name}
    new["spec"]["suspend"] = False
    return new


def without_start_time(value: Object) -> Object | None:
    """The object as if it had never started, so that its template may change; or None."""
    if not value.get("status", {}).get("startTime"):
        return None
    new = copy.deepcopy(value)
    del new["status"]["startTime"]
    return new


def anew(workload: Workload, job: Job) -> Object:
    """A manifest that makes the same workload again, suspended, and lets its containers be told."""
    old = workload.value
    meta = {key: old["metadata"].get(key) or {} for key in ("labels", "annotations")}
    meta["labels"] = _without_server_marks(meta["labels"])
    names = {key: old["metadata"][key] for key in ("name", "namespace")}
    new = {key: copy.deepcopy(old[key]) for key in ("apiVersion", "kind", "spec")}
    new |= {"metadata": {**names, **meta}}
    new["spec"]["suspend"] = True
    if not new["spec"].get("manualSelector"):
        new["spec"].pop("selector", None)
    for template in templates(new):
        labels = template.setdefault("metadata", {}).get("labels") or {}
        template["metadata"]["labels"] = _without_server_marks(labels)
        template["spec"]["containers"] = list(with_variables(template, job))
    return new


def templates(value: Object) -> Iterator[Object]:
    """Every pod template of a Job or JobSet."""
    for spec in _job_specs(value):
        yield spec["template"]


def _job_specs(value: Object) -> Iterator[Object]:
    """Of what brctl itself starts and stops; what others do is not read so closely."""
    if value.get("kind") == JOBSET.name:
        yield from (row["template"]["spec"] for row in value["spec"]["replicatedJobs"])
    elif value.get("kind") == JOB.name:
        yield value["spec"]


def _without_server_marks(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in _OF_THE_SERVER}
