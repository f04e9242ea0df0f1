"""Real slurmctld and slurmd processes on this machine, one slurmd per node, on loopback ports."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.fakes.ports import free_port
from tests.own_processes import pids_inside
from tests.timeouts import TIMEOUT_S

SILENCE_S = 300
"""Slurm's own default SlurmdTimeout: a slurmd without a CPU for a while is not down, and brctl must
not have to wait until Slurm misses a node."""

GRACE_S = 5.0
"""A slurmd whose step does not end never leaves by itself: after this long it is killed."""

NEEDED = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "sinfo", "squeue")

CONFIG = """\
ClusterName=brctl
SlurmctldHost={host}
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=1
SlurmdTimeout={silence_s}
KillWait=5
GresTypes=gpu
{nodes}
{partitions}
"""
ONE_PARTITION = "PartitionName=train Nodes=ALL Default=YES MaxTime=INFINITE State=UP"


def missing() -> list[str]:
    """Programs of Slurm that are not installed."""
    return [name for name in NEEDED if shutil.which(name, path="/usr/sbin:/usr/bin") is None]


@contextmanager
def slurm_cluster(
    folder: Path,
    names: Sequence[str],
    partitions: str = ONE_PARTITION,
    node_options: str = "",
) -> Iterator[Path]:
    """A cluster of these nodes; SLURM_CONF points to it while it runs."""
    nodes = "\n".join(
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={free_port()} CPUs=4"
        f" {node_options}"
        for name in names
    )
    config = folder / "slurm.conf"
    (folder / "state").mkdir()
    config.write_text(
        CONFIG.format(
            host="localhost",
            port=free_port(),
            folder=folder,
            silence_s=SILENCE_S,
            nodes=nodes,
            partitions=partitions,
        )
    )
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(config)
    processes = [start(folder, "slurmctld", ["-D", "-f", str(config)])]
    processes += [start(folder, "slurmd", ["-D", "-f", str(config), "-N", name]) for name in names]
    try:
        wait_until_idle(names)
        yield config
    finally:
        end(processes)
        end_step_daemons(config)
        os.environ.pop("SLURM_CONF")
        if before is not None:
            os.environ["SLURM_CONF"] = before


def start(folder: Path, program: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    with (folder / f"{program}.out").open("ab") as out:
        return subprocess.Popen(
            [f"/usr/sbin/{program}", *arguments], stdout=out, stderr=out, start_new_session=True
        )


def end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """The controller last, so that the nodes can say goodbye."""
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def end_step_daemons(config: Path) -> None:
    """Steps that were still completing leave their daemon behind when slurmd goes first."""
    for pid in pids_inside(f"SLURM_CONF={config}"):
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "slurmstepd":
                os.kill(pid, signal.SIGKILL)


def wait_until_idle(names: Sequence[str]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    actual = ""
    while time.monotonic() < deadline:
        done = subprocess.run(
            ["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True, check=False
        )
        actual = done.stdout + done.stderr
        if sum(line.endswith(" idle") for line in done.stdout.splitlines()) == len(names):
            return
        time.sleep(0.1)
    raise RuntimeError(f"Slurm is not up after {TIMEOUT_S:.0f} s: {actual}")
