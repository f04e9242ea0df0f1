"""The kinds of object that a training job can be, and where each says what: pure.

Names are those of the APIs: batch/v1, JobSet v1alpha2, training-operator 1.7 (PyTorchJob), Trainer
2.0 (TrainJob, which makes a JobSet of its own name) and Volcano 1.8.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brctl.fanout.kubernetes.kubectl import Object

_COMPLETION = "batch.kubernetes.io/job-completion-index"
_JOBSET_PART = "jobset.sigs.k8s.io/replicatedjob-name"
_JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
_TRAINER_PART = "node"
_KUBEFLOW = "training.kubeflow.org/"
_REPLICA_TYPES = ("Master", "Worker")
"""In the order of their ranks."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind.

    Attributes:
        api: Group and version.
        pods_label: What its pods carry with its name.
        part, number, index: Label or annotation in which a pod says of which part it is, of which
            copy of that part, and which of its pods; "" where there is but one.
        stop, start: Words that make its own controller do it; "" where brctl does it.
    """

    name: str
    api: str
    plural: str
    pods_label: str
    index: str = _COMPLETION
    part: str = ""
    number: str = ""
    stop: str = ""
    start: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether brctl starts and stops it, and not its own controller alone."""
        return not self.stop


def _suspend(plural: str, patch: str) -> dict[str, str]:
    words = f"kubectl -n {{namespace}} patch {plural} {{name}} --type merge -p '{patch}'"
    return {"stop": words.replace("SUSPEND", "true"), "start": words.replace("SUSPEND", "false")}


JOB = JobKind("Job", "batch/v1", "jobs", "job-name")
JOBSET = JobKind(
    "JobSet", "jobset.x-k8s.io/v1alpha2", "jobsets", _JOBSET_NAME,
    part=_JOBSET_PART, number="jobset.sigs.k8s.io/job-index",
)  # fmt: skip
TRAINJOB = JobKind(
    "TrainJob", "trainer.kubeflow.org/v1alpha1", "trainjobs", _JOBSET_NAME, part=_JOBSET_PART,
    **_suspend("trainjob", '{{"spec": {{"suspend": SUSPEND}}}}'),
)  # fmt: skip
PYTORCHJOB = JobKind(
    "PyTorchJob", "kubeflow.org/v1", "pytorchjobs", _KUBEFLOW + "job-name",
    part=_KUBEFLOW + "replica-type", index=_KUBEFLOW + "replica-index",
    **_suspend("pytorchjob", '{{"spec": {{"runPolicy": {{"suspend": SUSPEND}}}}}}'),
)  # fmt: skip
VOLCANO = JobKind(
    "Volcano Job", "batch.volcano.sh/v1alpha1", "jobs", "volcano.sh/job-name",
    part="volcano.sh/task-spec", index="volcano.sh/task-index",
    stop="vcctl job suspend -n {namespace} -N {name}",
    start="vcctl job resume -n {namespace} -N {name}",
)  # fmt: skip
KINDS = (JOB, JOBSET, TRAINJOB, PYTORCHJOB, VOLCANO)


def parts_of(kind: JobKind, spec: Object, nodes: int) -> Iterator[tuple[str, int, int]]:
    """Name, copies and pods of each part, in rank order.

    A TrainJob need not say its number of nodes, which its runtime may: then it is what is declared.
    """
    if kind is JOBSET:
        for row in spec["replicatedJobs"]:
            pods = int(row["template"]["spec"].get("completions") or 0)
            yield str(row["name"]), int(row.get("replicas", 1)), pods
    elif kind is TRAINJOB:
        yield _TRAINER_PART, 1, int((spec.get("trainer") or {}).get("numNodes") or nodes)
    elif kind is PYTORCHJOB:
        parts = spec.get("pytorchReplicaSpecs") or {}
        for name in [name for name in _REPLICA_TYPES if name in parts]:
            yield name.lower(), 1, int(parts[name].get("replicas", 1))
    elif kind is VOLCANO:
        for row in spec.get("tasks") or ():
            yield str(row["name"]), 1, int(row.get("replicas", 1))
    else:
        yield "", 1, int(spec.get("completions") or 0)


def is_suspended(kind: JobKind, value: Object) -> bool:
    """Whether its controller makes no pods for it now, and would again."""
    if kind is VOLCANO:
        return volcano_phase(value) in ("Aborting", "Aborted")
    policy = value["spec"].get("runPolicy") if kind is PYTORCHJOB else value["spec"]
    return bool((policy or {}).get("suspend"))


def volcano_phase(value: Object) -> str:
    """The one word that a Volcano Job has for how it stands."""
    state = (value.get("status") or {}).get("state")
    return str(state.get("phase", "")) if isinstance(state, Mapping) else ""
