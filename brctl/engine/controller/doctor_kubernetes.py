"""Examine what brctl needs of a Kubernetes cluster: kubectl, an answer, permissions, the jobs."""

import asyncio
import shutil
from collections.abc import Iterator

from brctl.backends.kubernetes.permissions import NeededFor, has_namespace, missing_permissions
from brctl.backends.kubernetes.workloads import Workloads
from brctl.fanout.kubernetes.kubectl import Kubectl
from brctl.library.config import Settings
from brctl.library.jobs import load_job
from brctl.model.doctor_finding import DoctorFinding
from brctl.model.errors import BrctlError
from brctl.model.jobs.job import Job
from brctl.model.sweeps.sweep import Health

TOPIC = "kubernetes"


def kubernetes(settings: Settings) -> Iterator[DoctorFinding]:
    """Findings about the cluster; none where another scheduler is configured."""
    if settings.scheduler != TOPIC:
        return
    if shutil.which("kubectl") is None:
        hint = "install it (Debian: kubernetes-client) and give this user a kubeconfig"
        yield DoctorFinding(Health.CRITICAL, TOPIC, "kubectl not found", hint)
        return
    yield from asyncio.run(_ask(settings))


async def _ask(settings: Settings) -> list[DoctorFinding]:
    chosen = settings.kubernetes
    kubectl = Kubectl(chosen.context, chosen.namespace)
    where = f"context {chosen.context or 'of kubectl'}, namespace {await kubectl.namespace()}"
    if not await has_namespace(kubectl):
        hint = "create it, or name another: `kubernetes: {namespace: NAME}` in config.yaml"
        return [DoctorFinding(Health.CRITICAL, TOPIC, f"{where}: no such namespace", hint)]
    lacking = await missing_permissions(kubectl, NeededFor.ALWAYS)
    findings = [not_allowed(TOPIC, what) for what in lacking]
    if not lacking:
        findings.append(DoctorFinding(Health.OK, TOPIC, f"{where}, every permission is there"))
    for what in await missing_permissions(kubectl, NeededFor.OPTIONAL, NeededFor.OPERATORS):
        text = f"not allowed: {what}; nothing else depends on it"
        findings.append(DoctorFinding(Health.OK, TOPIC, text))
    workloads = Workloads(kubectl)
    return findings + [await _job(workloads, load_job(path)) for path in settings.jobs]


def not_allowed(topic: str, what: str) -> DoctorFinding:
    """A right that the cluster does not give."""
    hint = "`brctl help kubernetes` lists all rights"
    return DoctorFinding(Health.CRITICAL, topic, f"not allowed: {what}", hint)


async def _job(workloads: Workloads, job: Job) -> DoctorFinding:
    try:
        found = await workloads.must_find(job)
    except BrctlError as error:
        return DoctorFinding(Health.WARNING, TOPIC, str(error), error.hint or "")
    if not found.kind.is_ours:
        text = f"job {job.name} is {found.kind.name} {found.name}, {found.pods} pods"
        hint = "brctl diagnoses it, and refuses to start, stop or swap it with the words to type"
        return DoctorFinding(Health.OK, TOPIC, text, hint)
    misses = found.misses(job, checkpoint="any")
    if misses:
        hint = "`brctl help kubernetes`: BRCTL_RESUME_FROM, BRCTL_CODE_DIR from annotations"
        text = f"{found.name} has no way to hear of {misses}; it will be made anew to start"
        return DoctorFinding(Health.WARNING, TOPIC, text, hint)
    if found.vanishes:
        hint = "take ttlSecondsAfterFinished out of it; brctl keeps the manifest of what it starts"
        text = f"{found.name} is deleted by the cluster some time after it has ended or failed"
        return DoctorFinding(Health.WARNING, TOPIC, text, hint)
    return DoctorFinding(Health.OK, TOPIC, f"job {job.name} is {found.name}, {found.pods} pods")
