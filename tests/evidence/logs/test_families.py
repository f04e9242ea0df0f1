"""Each family beside its harmless twin: the same subject, and nothing is wrong."""

# ruff: noqa: E501 - a log line is quoted whole

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.endings import leads_of_ending
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.fault import FaultClass, Origin
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
ENDED_WELL = "Training completed. Exiting normally."

PAIRS: tuple[tuple[str, str, str], ...] = (
    ("pcie", "pcieport 0000:41:00.0: DPC: containment event, status:0x1f05 source:0x0000", "pcieport 0000:41:00.0: DPC: error containment capabilities: Int Msg #0, RPExt+"),
    ("pcie", "pcieport 0000:41:00.0: pciehp: Slot(9): Card not present", "pcieport 0000:41:00.0: pciehp: Slot #9 AttnBtn- PwrCtrl- MRL- LLActRep+"),
    ("pcie", "ixgbe 0000:41:00.0: 7.876 Gb/s available PCIe bandwidth, limited by 2.5 GT/s PCIe x4 link", "ixgbe 0000:41:00.0: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x8 link)"),
    ("gpu-lost", "nvidia 0000:c1:00.0: not ready 8191ms after bus reset; waiting", "nvidia 0000:c1:00.0: enabling device (0000 -> 0002)"),
    ("node-failure", "mce: Uncorrected hardware memory error in user-access at 3fe01c000", "mce: CPU supports 22 MCE banks"),
    ("node-failure", "EDAC MC2: 1 UE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0", "EDAC MC2: Giving out device to module i10nm_edac controller"),
    ("node-failure", "Memory failure: 0x3fe01: recovery action for huge page: Failed", "Memory failure: 0x3fe01: recovery action for dirty LRU page: Recovered"),
    ("node-failure", "Kernel panic - not syncing: Fatal hardware error!", "Kernel command line: panic=30 mce=bootlog"),
    ("host-kernel", "rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu: Hierarchical RCU implementation."),
    ("host-kernel", "BUG: unable to handle page fault for address: ffffb01f87323de0", "page fault handler registered"),
    ("environment-mismatch", "traps: trainer[77] trap invalid opcode ip:7f21 sp:7ffc error:0 in libfast.so", "libfast.so: using the avx2 path"),
    ("storage-checkpoint", "blk_update_request: I/O error, dev sdq, sector 7712 op 0x1:(WRITE)", "sd 0:0:3:0: [sdq] Write cache: enabled, read cache: enabled"),
    ("storage-checkpoint", "nvme nvme4: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "nvme nvme4: 32/0/0 default/read/poll queues"),
    ("storage-checkpoint", "XFS (dm-9): Metadata CRC error detected at xfs_agf_read_verify+0x9a/0xd0", "XFS (dm-9): Ending clean mount"),
    ("storage-checkpoint", "EXT4-fs (sdb2): Remounting filesystem read-only", "EXT4-fs (sdb2): mounted filesystem with ordered data mode. Quota mode: none."),
    ("storage-checkpoint", "BTRFS info (device sdc1): forced readonly", "BTRFS info (device sdc1): using free space tree"),
    ("storage-checkpoint", "megaraid_sas 0000:18:00.0: FW in FAULT state, Fault code:0xfffff", "megaraid_sas 0000:18:00.0: FW now in Ready state"),
    ("storage-checkpoint", "LustreError: 11-0: scr-OST0003-osc: operation ost_write to node 10.9.0.3@o2ib failed: rc = -107", "Lustre: Mounted scr-client"),
    ("storage-checkpoint", "cluster [WRN] Health check failed: 2 osds down (OSD_DOWN)", "cluster [INF] Cluster is now healthy"),
    ("storage-checkpoint", "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation", "s3 upload of step_400 finished in 3.1 s"),
    ("disk-full", "OSError: [Errno 28] No space left on device", "tmpfs            94G  336K   94G   1% /dev/shm"),
    ("network-eth", "i40e 0000:3d:00.0: TX driver issue detected, PF reset issued; MMIO write failed", "i40e 0000:3d:00.0: fw 6.0.48442 api 1.7"),
    ("network-eth", "NETDEV WATCHDOG: ens5f0 (ice): transmit queue 9 timed out", "ice 0000:3d:00.0 ens5f0: NIC Link is up 100 Gbps Full Duplex"),
    ("network-ib", "NETDEV WATCHDOG: ib2 (mlx5_core): transmit queue 9 timed out", "ib2: enabling connected mode will cause multicast packet drops"),
    ("network-ib", "   GUID 0x0002c903006e29b0 port 9: [SymbolErrorCounter == 811] [LinkDownedCounter == 3]", "## Summary: 40 nodes checked, 0 bad nodes found"),
    ("network-ib", "opensm[9]: ERR 3113: MAD completed in error (IB_TIMEOUT): SubnGet(PortInfo)", "opensm[9]: SUBNET UP"),
    ("network-switch", "Ethernet12   to-gpu-7   down   err-disabled   off   100000   9100", "Ethernet12   to-gpu-7   up     -              off   100000   9100"),
    ("network-link", "%LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet7/1, changed state to down", "%SYS-6-LOGGING: logging to 10.0.0.3 started"),
    ("nvlink", "nv-fabricmanager[71]: failed to enable NVLink for GPU 6", "nv-fabricmanager[71]: Successfully configured all the available NVSwitches"),
    ("nvlink", "NVRM: Xid (PCI:0000:1b:00): 45, pid=9, name=python3, Ch 00000002 caused by previous Xid 149", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54"),
    ("driver-firmware", "NVRM: GPU2 RPC history (CPU -> GSP):", "NVRM: GPU2 using GSP firmware 550.54"),
    ("driver-firmware", "mlx5_core: probe of 0000:9a:00.0 failed with error -110", "mlx5_core 0000:9a:00.0: firmware version: 28.39.1002"),
    ("driver-firmware", "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"),
    ("driver-firmware", "[drm:amdgpu_device_ip_init [amdgpu]] *ERROR* hw_init of IP block <smu> failed -62", "[drm] Initialized amdgpu 3.54.0 for 0000:c1:00.0 on minor 1"),
    ("gpu-memory-ecc", "amdgpu 0000:c1:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block", "amdgpu 0000:c1:00.0: amdgpu: 0 correctable hardware errors detected in umc block"),
    ("thermal-power", " 12 | 03/04/2025 | 05:06:07 | Fan FAN4 | Lower Critical going low | Asserted", " 12 | 03/04/2025 | 05:06:07 | Fan FAN4 | Fully Redundant | Asserted"),
    ("node-failure", " 12 | 03/04/2025 | 05:06:07 | Memory DIMM_B2 | Uncorrectable ECC | Asserted", " 12 | 03/04/2025 | 05:06:07 | Event Logging Disabled SEL | Log area reset/cleared | Asserted"),
    ("pcie", " 12 | 03/04/2025 | 05:06:07 | Critical Interrupt PCIE | Bus Fatal Error | Asserted", " 12 | 03/04/2025 | 05:06:07 | Session Audit #0xff |  | Asserted"),
    ("node-failure", "Warning  NodeNotReady  3m  node-controller  Node is not ready", "Normal   NodeReady     3m  kubelet          Node g7 status is now: NodeReady"),
    ("cpu-oom", "Warning  SystemOOM  2m  kubelet  System OOM encountered, victim process: python3, pid: 88", "Normal   Started    2m  kubelet  Started container trainer"),
    ("storage-checkpoint", "Warning  FailedMount  9s  kubelet  MountVolume.SetUp failed for volume \"pvc-3\" : timed out", "Normal   SuccessfulAttachVolume  9s  attachdetach-controller  AttachVolume.Attach succeeded for volume \"pvc-3\""),
    ("preemption-sigterm", "=>> PBS: job killed: walltime 7210 exceeded limit 7200", "walltime=02:00:00 requested"),
    ("cpu-oom", "=>> PBS: job killed: mem 68719476kb exceeded limit 67108864kb", "mem=64gb requested"),
    ("preemption-sigterm", "submitit WARNING - Caught signal SIGUSR2 on g3: this job is preempted.", "submitit INFO - Job has not timed out. Ran 14 minutes out of requested 4320 minutes."),
    ("nccl-config", "g1:7:8 [0] NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", "g1:7:8 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>"),
    ("nccl-config", "g1:7:8 [0] misc/socket.cc:77 NCCL WARN Connect to 127.0.0.1<4000> failed : Connection refused", "g1:7:8 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>"),
    ("gpu-oom", "g1:7:8 [0] include/alloc.h:48 NCCL WARN Failed to CUDA calloc 4194304 bytes", "g1:7:8 [0] NCCL INFO comm 0x55 rank 0 nranks 8 cudaDev 0 - Init COMPLETE"),
    ("environment-mismatch", "NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 rank 9 version 21903", "NCCL version 2.19.3+cuda12.1"),
    ("environment-mismatch", "RuntimeError: CUDA error: system has unsupported display driver / cuda driver combination", "CUDA driver 12.4, runtime 12.1"),
    ("storage-checkpoint", "INFO: task jbd2/dm-3-8:911 blocked for more than 120 seconds.", "jbd2: commit interval 5 s"),
    ("storage-checkpoint", "WARNING: Pool 'tank' has encountered an uncorrectable I/O failure and has been suspended.", "errors: No known data errors"),
    ("network-eth", "nf_conntrack: nf_conntrack: table full, dropping packet", "nf_conntrack version 0.5.0 (65536 buckets, 262144 max)"),
    ("network-ib", "ib0: multicast join failed for ff12:401b:ffff:0000, status -110", "ib0: link becomes ready"),
    ("gpu-lost", "nvidia 0000:c1:00.0: Unable to change power state from D3cold to D0, device inaccessible", "nvidia 0000:c1:00.0: vgaarb: deactivate vga console"),
    ("cpu-oom", "java.lang.OutOfMemoryError: Java heap space", "java heap 4g of 8g used"),
    ("environment-mismatch", "ImportError: numpy.core.multiarray failed to import", "numpy 1.26.4"),
    ("preemption-sigterm", "Normal  TaintManagerEviction  2s  taint-eviction-controller  Marking for deletion Pod ml/train-0", "Normal  Scheduled  2s  default-scheduler  Successfully assigned ml/train-0 to g7"),
    ("data-loader", "Corrupt JPEG data: premature end of data segment", "dataset: 1281167 images in 1000 folders"),
    ("data-loader", "ERROR: Unexpected segmentation fault encountered in worker.", "starting 8 data loader workers"),
    ("numeric-nan", "RuntimeError: Function 'PowBackward0' returned nan values in its 0th output.", "anomaly detection enabled"),
    ("user-code", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method", "start method: spawn"),
    ("network-ib", "Failed to modify QP to RTS: Connection timed out", "QP 88 moved to RTS"),
    ("nccl-config", "ncclSocketInit: connecting to address  with family 51 is neither AF_INET(2) nor AF_INET6(10)", "g1:7:8 [0] NCCL INFO NCCL_SOCKET_FAMILY set by environment to AF_INET"),
    ("nccl-config", "g1:7:8 [0] transport/p2p.cc:99 NCCL WARN failed to open CUDA IPC handle : 217 peer access is not supported between these two devices", "g1:7:8 [0] NCCL INFO Channel 00 : 0[1d000] -> 1[1e000] via SHM/direct"),
    ("nvlink", "P2P is disabled between NVLINK connected GPUs 5 and 2. This should not be the case given their connectivity", "g1:7:8 [0] NCCL INFO Channel 00/0 : 5[5] -> 2[2] via P2P/CUMEM"),
    ("nvlink", "CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error", "CUDA peer access enabled over nvlink"),
    ("cpu-oom", "systemd-oomd[611]: Killed /user.slice/job.scope due to memory pressure for /user.slice being 71.2% > 50.0%", "systemd[1]: Started Userspace Out-Of-Memory (OOM) Killer."),
    ("cpu-oom", "low memory! at or below SIGTERM limits: mem 4.00%, swap 10.00%", "mem avail: 41002 of 64301 MiB (63.77%), swap free: 0 of 0 MiB"),
    ("numeric-nan", "[Epoch 3 512/4096][Iteration 9] Train 64 in 1.2seconds. Loss is Infinity.", "[Epoch 3 512/4096][Iteration 9] Train 64 in 1.2seconds. Loss is 1.26."),
    ("environment-mismatch", "slurmd[71]: slurmd: fatal: Unable to determine this slurmd's NodeName", "slurmd[71]: slurmd: Slurmd shutdown completing"),
    ("hang-mismatch", "init.cc:1247 NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 7.", "NCCL INFO AllReduce: opCount 4 sendbuff 0x7f recvbuff 0x7f count 8"),
)  # fmt: skip


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("node.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("node.log", reader.events())


@pytest.mark.parametrize(("fault", "line", "twin"), PAIRS, ids=[line[:50] for _, line, _ in PAIRS])
def test_a_family_accuses_and_its_twin_does_not(fault: str, line: str, twin: str) -> None:
    """The fault's line alone speaks for its class; the harmless one lets a job that ended well be."""
    assert classify(line).fault.value == fault
    assert classify(twin, ENDED_WELL).fault is FaultClass.NO_FAULT


def test_a_crash_made_by_hand_is_a_persons() -> None:
    """Who wrote to sysrq wanted the crash: the kernel is well."""
    said = classify("sysrq: Trigger a crash", "Kernel panic - not syncing: sysrq triggered crash")
    assert (said.fault, said.origin) == (FaultClass.HOST_KERNEL, Origin.USER)


def test_an_oops_stands_beside_the_slow_disk_before_it() -> None:
    """A crash in a driver's code is that driver's, whatever it was working on."""
    said = classify(
        "[  449.670780] nvme nvme2: I/O 8 QID 0 timeout, reset controller",
        "[  449.697974] BUG: kernel NULL pointer dereference, address: 00000000000000c8",
    )
    assert said.fault is FaultClass.HOST_KERNEL


def test_a_bare_cancellation_after_a_failure_is_no_cause() -> None:
    """Whoever saw the time-out stopped the job; alone it is the cause."""
    stop = "slurmstepd: error: *** JOB 7 ON g1 CANCELLED AT 2026-07-05T03:00:00 ***"
    wait = "2026-07-05 02:59:30 [rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600080 milliseconds"
    assert classify(stop).fault is FaultClass.PREEMPTION_SIGTERM
    assert classify(wait, stop).fault is FaultClass.UNKNOWN


def test_watchdogs_far_apart_are_a_mismatch_and_near_ones_are_not() -> None:
    """Ranks that wait at the same number wait for somebody; far apart they run different programs."""
    line = "[rank{}]:[E] [Rank {}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600080 milliseconds before timing out."
    apart = [line.format(0, 0, 96117), line.format(7, 7, 64088)]
    assert classify(*apart).fault is FaultClass.HANG_MISMATCH
    near = [line.format(0, 0, 96117), line.format(7, 7, 96118)]
    assert classify(*near).fault is FaultClass.UNKNOWN


def test_steps_that_wait_for_data_are_the_loader() -> None:
    """A step that is slow because its batch came late; one that is slow by itself is not."""
    row = "Epoch: [1][{}/5005] Time {} (0.17) Data {} (0.05) Loss 1.4 (1.2)"
    fast = [row.format(n, 0.17, 0.04) for n in range(0, 40, 20)]
    late = [row.format(n, 9.1, 8.9) for n in range(40, 100, 20)]
    slow = [row.format(n, 9.1, 0.04) for n in range(40, 100, 20)]
    assert classify(*fast, *late).fault is FaultClass.DATA_LOADER
    assert classify(*fast, *slow).fault is not FaultClass.DATA_LOADER


def test_a_bare_sigkill_leads_to_memory_first() -> None:
    """The cause is not proved; the likeliest is named, with what would settle it."""
    said = classify(
        "  exitcode  : -9 (pid: 7)", "  traceback : Signal 9 (SIGKILL) received by PID 7"
    )
    assert said.fault is FaultClass.UNKNOWN
    assert [lead.fault for lead in said.leads] == [
        FaultClass.CPU_OOM,
        FaultClass.PREEMPTION_SIGTERM,
    ]
    assert all(len(set(lead.commands)) == 2 for lead in said.leads)


def test_a_known_cause_needs_no_lead() -> None:
    """Leads are for what a log does not prove."""
    assert classify("Out of memory: Killed process 99 (python3) total-vm:1kB").leads == ()
    assert leads_of_ending([]) == ()


def test_a_list_of_guesses_proves_none_of_them() -> None:
    """A program that names what may have happened has not seen it."""
    guesses = "Worker unexpectedly exits with a connection error code 2. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called."
    assert classify(guesses).fault is FaultClass.UNKNOWN


def test_queues_that_a_gpu_does_not_give_up_are_no_preempted_job() -> None:
    """The driver's queue preemption and the scheduler's share a word, nothing else."""
    said = classify("amdgpu: unsuccessful queues preemption")
    assert said.fault is not FaultClass.PREEMPTION_SIGTERM
    assert classify("this job was preempted").fault is FaultClass.PREEMPTION_SIGTERM


def test_virtual_interfaces_explain_a_connection_that_fails() -> None:
    """A socket bound to a container's interface reaches no other machine; the same refusal on a real one is the network's."""
    refused = "g1:7:8 [0] NCCL INFO Call to connect returned Connection timed out, retrying"
    virtual = (
        "g1:7:8 [0] NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0> [1]veth77:fe80::1%veth77<0>"
    )
    real = "g1:7:8 [0] NCCL INFO NET/Socket : Using [0]eno1:10.0.0.1<0>"
    assert classify(virtual, refused).fault is FaultClass.NCCL_CONFIG
    assert classify(real, refused).fault is FaultClass.NETWORK_ETH
    assert classify(virtual, ENDED_WELL).fault is FaultClass.NO_FAULT


def test_a_skipped_step_before_a_finite_loss_is_ordinary() -> None:
    """Loss scalers begin too high; rows that go on show that it passed. A loss that is not finite does not."""
    skipped = "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 65536.0"
    row = "[2026-01-02 03:04:05 net](main.py 9): INFO Train: [2/300][40/50]   eta 0:17:06 lr 0.0005 time 1.1 (1.0)    loss {} (3.1)    grad_norm 1.0"
    assert classify(skipped, row.format("3.2")).fault is FaultClass.NO_FAULT
    assert classify(skipped, row.format("nan")).fault is not FaultClass.NO_FAULT


def test_a_semaphore_that_cannot_be_made_is_no_full_disk() -> None:
    """Semaphores live in shared memory; the same error of a write is the disk's."""
    frame, error = "    self._rlock = ctx.Lock()", "OSError: [Errno 28] No space left on device"
    assert classify(frame, error).fault is FaultClass.DATA_LOADER
    assert classify("    handle.write(batch)", error).fault is FaultClass.DISK_FULL
