"""Two classes that stand side by side in one log: which of them caused the other, and whose side it is on."""

# ruff: noqa: E501 - a log line is quoted whole

import pytest

from brctl.model.fault import FaultClass, Origin
from tests.evidence.logs.test_attribution import classify

NODE_GONE = "slurmctld: error: Nodes q17 not responding, setting DOWN"
SUPPLY = (
    "[bmc q17] 2026-03-02 04:10:01 | Power Supply PSU1_Status | Power Supply AC lost | Asserted"
)
LIMIT = (
    "slurmstepd: error: *** JOB 77 ON q17 CANCELLED AT 2026-03-02T04:10:01 DUE TO TIME LIMIT ***"
)
REQUEUED = (
    "slurmstepd: error: *** JOB 77 ON q17 CANCELLED AT 2026-03-02T04:10:01 DUE TO JOB REQUEUE ***"
)
FULL = "OSError: [Errno 28] No space left on device: '/scratch/run/model.pt'"
UNPLUGGED = [
    "[511.20] mlx5_core 0000:9a:00.0: Port module event: module 1, Cable unplugged",
    "[511.21] mlx5_core 0000:9a:00.0 rdma4: Link down",
]
HUNG = "[640.10] INFO: task {}:812 blocked for more than 120 seconds."
IN_DRIVER = "[640.12]  mlx5_cmd_exec+0x54/0x80 [mlx5_core]"


def test_a_part_that_failed_first_is_why_its_node_is_gone() -> None:
    """The controller only sees that a node is silent; its supply said before that it lost power."""
    actual = classify(log=[SUPPLY, NODE_GONE])
    assert actual.fault is FaultClass.THERMAL_POWER
    assert classify(log=[NODE_GONE]).fault is FaultClass.NODE_FAILURE


def test_a_part_that_complains_after_its_node_was_missed_did_not_take_it() -> None:
    """A supply that is switched off with a node that already failed is a consequence."""
    assert classify(log=[NODE_GONE, SUPPLY]).fault is FaultClass.NODE_FAILURE


def test_a_node_that_its_cloud_took_back_did_not_fail() -> None:
    """The notice came first; one that comes after the node was missed explains nothing."""
    notice = "agent q17: EventType: Preempt, NotBefore: 04:12:30"
    assert classify(log=[notice, NODE_GONE]).fault is FaultClass.PREEMPTION_SIGTERM
    assert classify(log=[NODE_GONE, notice]).fault is FaultClass.NODE_FAILURE


@pytest.mark.parametrize(
    "written",
    [
        "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 812992 vs 812880",
        "LustreError: 812:0:(osc_cache.c:952:osc_extent_wait()) extent wait timed out, rc -28",
    ],
)
def test_a_write_that_failed_for_lack_of_space_is_no_broken_storage(written: str) -> None:
    """Who writes tells of his write; the operating system's own word says what it lacked."""
    actual = classify(log=[written, FULL])
    assert actual.fault is FaultClass.DISK_FULL
    assert classify(log=[written]).fault is not FaultClass.DISK_FULL


def test_a_disk_that_reports_errors_is_not_only_full() -> None:
    """The kernel's errors of a device are hardware's own word."""
    disk = "kernel: blk_update_request: I/O error, dev sdq, sector 88121 op 0x1:(WRITE)"
    assert classify(log=[disk, FULL]).fault is FaultClass.STORAGE_CHECKPOINT


def test_a_message_of_the_shell_did_not_end_a_job_that_ran_into_its_limit() -> None:
    """What has no traceback and ended nothing leaves the scheduler's own reason standing."""
    actual = classify(log=["ActivationNotFoundError: run the set-up first", LIMIT])
    assert (actual.fault, actual.origin) == (FaultClass.PREEMPTION_SIGTERM, Origin.USER)


def test_a_traceback_before_the_limit_is_why_the_job_stood() -> None:
    """The other ranks waited for the one that raised, until the limit.

    By the rules alone; with the words heard it is the first lead of unknown.
    """
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in step',
        "KeyError: 'labels'",
        LIMIT,
    ]
    assert classify(log=lines).fault is FaultClass.USER_CODE


def test_a_job_that_requeues_itself_at_a_signal_was_not_preempted() -> None:
    """It says so itself: a signal alone may be a preemption's."""
    own = classify(log=["launcher: received SIGUSR2, requeueing", REQUEUED])
    assert (own.fault, own.origin) == (FaultClass.PREEMPTION_SIGTERM, Origin.USER)
    assert classify(log=[REQUEUED]).origin is Origin.INFRA


@pytest.mark.parametrize(
    ("word", "side"),
    [
        ("TERM_OWNER: job killed by owner.", Origin.USER),
        ("TERM_ADMIN: job killed by root or LSF administrator.", Origin.INFRA),
        ("TERM_PREEMPT: job killed after preemption.", Origin.INFRA),
    ],
)
def test_who_killed_a_batch_job_has_the_side(word: str, side: Origin) -> None:
    """LSF says by whose hand a job ended."""
    actual = classify(log=[word])
    assert (actual.fault, actual.origin) == (FaultClass.PREEMPTION_SIGTERM, side)


@pytest.mark.parametrize(
    "start",
    [
        "slurmstepd: error: pyxis: couldn't start container",
        "  OCI runtime create failed: runc create failed: unable to start container process",
        "      Reason:       StartError",
    ],
)
def test_memory_that_ran_out_is_why_a_container_did_not_start(start: str) -> None:
    """That something did not start says nothing of why; alone it is how the container was made."""
    killed = "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0."
    for lines in ([start, killed], [killed, start]):
        assert classify(log=lines).fault is FaultClass.CPU_OOM, lines
    assert classify(log=[start]).fault is FaultClass.ENVIRONMENT_MISMATCH


def test_a_program_that_waits_on_a_port_that_went_down_is_its_victim() -> None:
    """In the kernel's own log the order of lines is the order of time."""
    lines = [*UNPLUGGED, HUNG.format("trainer")]
    assert classify(kernel=lines).fault is FaultClass.NETWORK_LINK


def test_a_worker_of_the_kernel_that_hangs_in_a_driver_is_the_kernels() -> None:
    """A program in the same place waits for the device; a worker holds or waits for a lock."""
    refused = "[639.00] mlx5_core 0000:9a:00.0: cmd_work_handler:877:(pid 8): failed to allocate command entry"
    worker = classify(kernel=[refused, HUNG.format("kworker/3:1"), IN_DRIVER])
    assert worker.fault is FaultClass.HOST_KERNEL
    program = classify(kernel=[refused, HUNG.format("trainer"), IN_DRIVER])
    assert program.fault is FaultClass.DRIVER_FIRMWARE


def test_a_driver_that_does_not_fit_its_libraries_is_no_failing_driver() -> None:
    """The kernel module and what calls it are of two releases: an upgrade, by whoever runs the node."""
    lines = [
        "kernel: NVRM: API mismatch: the client has the version 601.10, but",
        "Failed to initialize NVML: Driver/library version mismatch",
    ]
    for said in (lines[:1], lines):
        actual = classify(log=said)
        assert (actual.fault, actual.origin) == (
            FaultClass.ENVIRONMENT_MISMATCH,
            Origin.INFRA,
        ), said


def test_a_storm_of_pauses_is_the_switchs_where_the_switch_says_so() -> None:
    """Its own daemon speaks of its own ports; a host that counts pauses does not know whose they are."""
    storm = "PFC Watchdog detected PFC storm on port Ethernet12, queue index 3"
    assert classify(log=[f"tor-2 swss#orchagent: :- {storm}"]).fault is FaultClass.NETWORK_SWITCH
    assert classify(log=[f"q17 agent: {storm}"]).fault is FaultClass.NETWORK_ETH


def test_memory_of_a_cpu_is_no_memory_of_a_gpu() -> None:
    """A management controller calls both uncorrectable; the slot of a CPU tells which."""
    line = "Uncorrectable Memory Error Detected, memory in slot 9 of CPU 1."
    assert classify(log=[line]).fault is not FaultClass.GPU_MEMORY_ECC


def test_a_shard_of_samples_is_no_checkpoint() -> None:
    """A tar file of images that cannot be decoded belongs to the data."""
    line = 'Failed to decode sample #9 "part/shard-00031.tar at index 12: a.jpg": corrupt stream'
    assert classify(log=[line]).fault is not FaultClass.STORAGE_CHECKPOINT


def test_a_peer_that_does_not_answer_retries_is_the_sites() -> None:
    """Status 12 is a path or a port that is silent; where a peer died, its own line decides."""
    line = "q17:8:9 [6] NCCL WARN NET/IB : Got completion from peer 192.0.2.7<40100> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
    actual = classify(log=[line])
    assert (actual.fault, actual.origin) == (FaultClass.NETWORK_IB, Origin.INFRA)


def test_shared_memory_of_a_runners_pod_is_the_platforms() -> None:
    """Who writes the job does not set the pod of a CI runner; elsewhere it is the user's option."""
    line = "{}:20:21 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab1 to 9637892 bytes"
    for host, side in (("ci-runner-7fk2-workflow", Origin.INFRA), ("q17", Origin.USER)):
        actual = classify(log=[line.format(host)])
        assert (actual.fault, actual.origin) == (FaultClass.NCCL_CONFIG, side), host


def test_an_adapter_that_was_sick_before_did_not_fall_off_the_bus() -> None:
    """Its recovery gives up because the adapter does not answer: the bus is where that shows."""
    sick = "Mar  2 04:10:01 q17 kernel: mlx5_core 0000:9a:00.0: poll_health:831:(pid 0): device's health compromised - reached miss count"
    gone = "Mar  2 04:10:03 q17 kernel: mlx5_core 0000:9a:00.0: mlx5_health_try_recover:327:(pid 8): health recovery flow aborted, PCI reads still not working"
    assert classify(log=[sick, gone]).fault is FaultClass.NETWORK_IB
    assert classify(log=[gone]).fault is FaultClass.PCIE


def test_a_driver_without_a_window_to_its_card_is_stopped_by_the_bus() -> None:
    """Of the driver's start and the windows it needs, what it names first is the cause."""
    windows = [
        "kernel: NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
        "kernel: NVRM: BAR1 is 0M @ 0x0 (PCI:0000:9a:00.0)",
    ]
    start = "kernel: NVRM: GPU 0000:9a:00.0: RmInitAdapter failed! (0x24:0x72:1556)"
    assert classify(log=[*windows, start]).fault is FaultClass.PCIE
    assert classify(log=[start, *windows]).fault is FaultClass.DRIVER_FIRMWARE


def test_a_bus_that_complains_of_the_card_that_is_lost_later_is_no_other_fault() -> None:
    """Hours pass between a function of a GPU that does not answer and the driver's own word."""
    asleep = "Mar  2 04:10:01 q17 kernel: vfio-pci 0000:{}:00.1: Unable to change power state from D3cold to D0, device inaccessible"
    lost = "Mar  2 09:10:01 q17 kernel: NVRM: Xid (PCI:0000:9a:00): 79, GPU has fallen off the bus."
    assert classify(log=[asleep.format("9a"), lost]).fault is FaultClass.GPU_LOST
    elsewhere = classify(log=[asleep.format("1b"), lost])
    assert FaultClass.PCIE in {elsewhere.fault, *(fault for fault, _ in elsewhere.alternatives)}
