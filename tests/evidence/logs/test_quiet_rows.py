"""A row of a listing names faults that it did not count: no rule reads the name as the fault."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.quiet_rows import is_quiet_row
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.unexplained import is_alarming
from brctl.evidence.logs.words.components import component_event
from brctl.model.fault import FaultClass

INDEX = LineIndex(SHIPPED)
QUIET = [
    "Critical Drive Temperature Minutes:   0",
    "PSU fault ............ : No",
    "Fan failure events   = 0x00",
    "Uncorrectable errors : 0 errors",
    "Bus stuck check      : ok",
    "IERR_CPU1    | 0x00    | ok",
    "Route Unhealthy      : False",
    "jobs failed: 0",
    "link_failed: 0",
    "Fan 3 failed ........ : no",
    "Uncorrectable errors : no errors",
    "[Ok] [Type: Memory] [Name: Uncorrectable ECC - Deassert] [Summary: as it should be]",
    "Memory #0x8f | Uncorrectable ECC | Deasserted",
    "  row remap failures                 0",
    "  AER fatal / nonfatal errors        0 / 0",
    "replica 4 rebuilt, robustness changed: degraded -> healthy",
    "IML Repaired: Network Adapter Link Down (Slot 1, Port 2)",
    "2025-03-01 08:26 Repaired       Power Supply Redundancy Lost",
    "  Process: 91 ExecStart=/usr/bin/nv-fabricmanager (code=exited, status=0/SUCCESS)",
    "[stage:prep] LustreError seen on the console? no",
]
NOT_QUIET = [
    "Link detected: no",
    "GPUs available: 0",
    "Ready : False",
    "Uncorrectable errors : 3",
    "IERR_CPU1    | 0x01    | nc",
    "Power supply: failed",
    "upload failed: None",
    "bus failure: no carrier",
    "cooling lost: 0 fans",
    "Memory #0x8f | Uncorrectable ECC | Asserted",
    "PSU2 | Presence detected | Deasserted",
    "bmc: GPU4 PWR_GOOD deasserted: power supply fault, GPU lost",
    "SEL: PSU2 Power Good deasserted, power supply failure detected",
    "[PASS] node1 memtest; [FAIL] node2 memtest: uncorrectable ECC errors: 3",
    "[OK] Started job; CUDA out of memory on rank 3",
    "disk 3 failed, GPU row remap error, count=0x0",
    "  GPUs present                       0",
    "  row remap failures                 1",
    "port 3: up -> down",
    "link went down -> up -> down",
    "IB link up? no",
]
ACCUSES_NOBODY = [
    "IERR_CPU1    | 0x00    | ok",
    "Link Down Counter   : 0",
    "core test: 96 cores, 4000 runs, 0 miscompares, done",
    "nvlink replay errors: 0, nvlink crc errors: 0, link_down: 0",
    "hca link errors: 0 link failures: 0",
    "RestartConfig(on_exit=True, last_signal='SIGKILL', workers=8)",
    "RestartConfig(after=Delay(s=3), last_signal='SIGKILL', workers=8)",
    "site.StragglerDetection: GPU relative performance:",
    "INFO straggler detection enabled for all ranks",
    "GPU 1: ignoring Xid 31 (application error)",
    "gpu 0 xid count: 0",
    "If a GPU reports Xid 79, drain the node",
    "May  1 12:01:00 gpu-03 dhclient[88]: offer on eth0, xid 79",
    "GPU 3: no new Xid 79 since repair",
    "GPU 0 xid 79 not seen",
    "[INFO] GPU health summary: xid 48 = 0 | xid 79 = 0",
    "gpu alert rule loaded: expr: xid == 79 for: 1m severity: critical",
    "self-test: injecting fake Xid 79 on GPU 0 to test the alert path",
    "gpus=8 xid=31 step=100 loss=2.31",
    "note: batches of this size may cause CUDA out of memory errors",
    "overlap is off for this run to avoid CUDA out of memory",
    "in case of CUDA out of memory the batch is halved",
    "the operator looked: not a CUDA out of memory, the loader slept",
    "registered a handler for CUDA out of memory",
]
ACCUSES = [
    ("OpenBMC.0.4.MemoryECCUncorrectable: Memory Uncorrectable Error DIMM=0", "node-failure"),
    ("no CUDA-capable device is detected", "environment-mismatch"),
    ("rank 0 CUDA out of memory. Tried to allocate 2.00 GiB", "gpu-oom"),
    ("watcher: GPU 3 Xid 79 detected", "gpu-lost"),
    ("health agent: xid=94 on gpu 2", "gpu-memory-ecc"),
    ("XID error 74 on H100 of n7", "nvlink"),
    ("GPU 3: Xid 79, filter=all", "gpu-lost"),
    ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. PERST# deasserted", "gpu-lost"),
    ("straggler_monitor: GPU 7 of rank 3 flagged", "straggler-slow"),
    ("StragglerDetector: rank 5 detected", "straggler-slow"),
    ("S.M.A.R.T Status Bad, Backup and Replace.", "storage-checkpoint"),
    (
        "upload failed attempt 5/5: An error occurred (503) PutObject to bucket/a",
        "storage-checkpoint",
    ),
    ("mlx5_core 0000:17:00.0: fatal command error, not recovered", "network-ib"),
    ("step 3: CUDA out of memory. Set a limit to avoid fragmentation", "gpu-oom"),
    ("to avoid a restart it went on. Then CUDA out of memory on rank 3", "gpu-oom"),
    ("Job deleted at request of root@head", "preemption-sigterm"),
    (
        "fsdp.py:22: UserWarning: no clone of x. Error: CUDA out of memory. Tried to",
        "gpu-oom",
    ),
]


def fault_of(line: str) -> FaultClass:
    reader = LineReader("a.log", INDEX)
    reader.read(1, line.encode())
    return judge("a.log", reader.events()).fault


@pytest.mark.parametrize("line", QUIET)
def test_a_row_at_rest_is_no_alarm(line: str) -> None:
    """Neither its words of alarm count nor the component that it names."""
    assert is_quiet_row(line)
    assert not is_alarming(line)
    assert component_event({1: line}, "a.log", lambda _: False) is None


@pytest.mark.parametrize("line", NOT_QUIET)
def test_what_is_missing_or_counted_is_not_at_rest(line: str) -> None:
    assert not is_quiet_row(line)


@pytest.mark.parametrize("line", ACCUSES_NOBODY)
def test_names_of_counters_and_options_accuse_nobody(line: str) -> None:
    assert fault_of(line) in (FaultClass.UNKNOWN, FaultClass.NO_FAULT)


@pytest.mark.parametrize(("line", "fault"), ACCUSES)
def test_a_number_that_says_which_one_hides_nothing(line: str, fault: str) -> None:
    assert fault_of(line).value == fault


@pytest.mark.parametrize(
    "line",
    [
        "watcher: GPU 5 Xid 79 detected",
        "May  1 12:01:00 gpu-03 watcher[7]: GPU 5 Xid 79 detected",
        "2024-05-01 gpu-12 watcher: Xid 79 detected on GPU 5",
        "watcher: gpu_driver=535 on gpu7: Xid 48 seen for GPU 5",
    ],
)
def test_a_tool_that_repeats_an_xid_names_its_gpu(line: str) -> None:
    """And not the host that is called like one: somebody would drain another GPU."""
    reader = LineReader("a.log", INDEX)
    reader.read(1, line.encode())
    assert str(judge("a.log", reader.events()).culprit).startswith("GPU 5")


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Timeout waiting for RPC from GSP0! Expected function 76, attempt 1/4",
        "kernel: mlx5_core 0000:5e:00.0 ens1f0np0: Link down, recovered after 3 ms",
        "step 41: model restored from /ckpt/3 earlier; OSError: [Errno 5] Input/output error: 'x'",
        "WARNING save failed: OSError: [Errno 5] Input/output error: '/ckpt/7' (attempt 1/3)",
        "nfs: server fs1 not responding, timed out; mount never fully recovered",
        "sd 0:0:0:0: [sda] Sense Key : Recovered Error; I/O error, dev sda, sector 99182 op 0x0",
        "fatal: The NVIDIA driver on your system is too old (found version 11040), GPU is disabled",
    ],
)
def test_words_that_take_something_back_hide_no_fault_of_their_line(line: str) -> None:
    """Each was no fault, or unknown, for a word that speaks of something else."""
    assert fault_of(line) not in (FaultClass.UNKNOWN, FaultClass.NO_FAULT)
