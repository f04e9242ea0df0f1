"""Who failed first: time, roles and explanations over several lines and inputs."""

# ruff: noqa: E501 - a log line is quoted whole

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.model.evidence import Role
from brctl.model.fault import Action, FaultClass, Origin
from brctl.model.log_verdict import LogVerdict
from brctl.playbook.recommend import recommend_for_logs

INDEX = LineIndex(SHIPPED)
PEER_LOST = "2026-07-05 03:10:{:02d} g{}:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer g7<1>"


def classify(**inputs: list[str]) -> LogVerdict:
    """The verdict over named inputs."""
    events = []
    for name, lines in inputs.items():
        reader = LineReader(name, INDEX)
        for number, line in enumerate(lines, 1):
            reader.read(number, line.encode())
        events += reader.events()
    return judge("", events)


def test_a_victim_never_wins_over_a_root_before_it() -> None:
    """A thousand broken connections do not outvote one Xid a few seconds earlier."""
    victims = {f"rank-{r:05d}.log": [PEER_LOST.format(20, r)] for r in range(40)}
    kernel = [
        "Jul  5 03:10:12 g7 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
    ]
    actual = classify(dmesg=kernel, **victims)
    assert actual.fault is FaultClass.GPU_LOST
    assert actual.culprit == "GPU 0000:9b:00 on g7"
    assert {line.role for line in actual.evidence} >= {Role.ROOT, Role.VICTIM}


def test_a_class_too_weak_to_be_claimed_still_says_whose_side_it_is_on() -> None:
    """An exception of a type nobody knows is the code's, whatever went wrong; silence is nobody's."""
    actual = classify(rank=["Traceback (most recent call last):", "zorn.ZornError: no more zorn"])
    assert (actual.fault, actual.origin) == (FaultClass.UNKNOWN, Origin.USER)
    assert classify(rank=["a line"]).origin is Origin.UNKNOWN


def test_victims_alone_stay_unknown_and_name_the_peer() -> None:
    """With nothing but broken connections the class is unknown; the peer they name is the lead."""
    actual = classify(a=[PEER_LOST.format(20, 1)], b=[PEER_LOST.format(21, 2)])
    assert actual.fault is FaultClass.UNKNOWN
    assert actual.culprit == "peer g7"
    assert recommend_for_logs(actual).action is Action.STOP_TIME_CHECKS


def test_what_follows_the_schedulers_stop_proves_nothing() -> None:
    """Errors of processes that are being killed are teardown."""
    actual = classify(
        log=[
            "slurmstepd: error: *** STEP 1.0 ON g1 CANCELLED AT 2026-07-05T03:00:00 DUE TO PREEMPTION ***",
            "[rank1]: Traceback (most recent call last):",
            "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered",
        ]
    )
    assert actual.fault is FaultClass.PREEMPTION_SIGTERM
    assert any(line.role is Role.TEARDOWN for line in actual.evidence)


def test_a_stop_after_a_crash_is_not_the_cause() -> None:
    """Torchrun ends the other ranks because one failed, not the other way round."""
    actual = classify(
        log=[
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "Sending process 17 closing signal SIGTERM",
            "slurmstepd: error: *** STEP 1.0 ON g1 CANCELLED AT 2026-07-05T03:00:00 ***",
        ]
    )
    assert actual.fault is FaultClass.GPU_OOM
    assert actual.culprit_ranks == (3,)


def test_node_failure_explains_the_cancellation() -> None:
    """A job cancelled because a node died is a node failure, and the node is named."""
    actual = classify(
        log=[
            "srun: error: Node failure on g[017]",
            "slurmstepd: error: *** STEP 1.0 ON g1 CANCELLED AT 2026-07-05T03:00:00 DUE TO NODE FAILURE ***",
        ]
    )
    assert actual.fault is FaultClass.NODE_FAILURE
    assert actual.culprit == "g[017]"


def test_a_killed_worker_with_the_kernels_proof_is_out_of_memory() -> None:
    """The kernel's line explains both the SIGKILL and the data loader that died of it."""
    actual = classify(
        dmesg=["Out of memory: Killed process 99 (python3) total-vm:1kB"],
        log=["RuntimeError: DataLoader worker (pid 99) is killed by signal: Killed."],
    )
    assert actual.fault is FaultClass.CPU_OOM


def test_a_bare_sigkill_stays_unknown() -> None:
    """Infra and out-of-memory both need proof; without it the next step is to collect more."""
    actual = classify(
        log=["  exitcode  : -9 (pid: 7)", "  traceback : Signal 9 (SIGKILL) received by PID 7"]
    )
    assert actual.fault is FaultClass.UNKNOWN
    assert actual.origin is Origin.UNKNOWN
    assert FaultClass.CPU_OOM in dict(actual.alternatives)


def test_the_journal_may_be_printed_newest_first() -> None:
    """Within one input the clock decides, not the line number."""
    actual = classify(
        log=[
            "Jul  5 03:20:00 g1 kernel: NVRM: Xid (PCI:0000:9b:00): 31, pid=1, name=python, MMU Fault",
            "Jul  5 03:10:00 g1 kernel: NVRM: Xid (PCI:0000:9b:00): 48, pid=1, DBE (double bit error) ECC Error",
        ]
    )
    assert actual.fault is FaultClass.GPU_MEMORY_ECC


def test_nothing_wrong_is_said_only_when_something_was_read() -> None:
    """An input without any bytes is unknown, and so is a quiet one: silence is not health."""
    assert judge("empty", [], readable=False).fault is FaultClass.UNKNOWN
    assert judge("quiet", []).fault is FaultClass.UNKNOWN


def test_the_last_line_of_a_traceback_speaks_for_the_code() -> None:
    """An ordinary exception that fails first is user code, on the rank that raised it."""
    actual = classify(
        log=[
            "[rank5]: Traceback (most recent call last):",
            '[rank5]:   File "/home/u/train.py", line 10, in main',
            "[rank5]: TypeError: forward() missing 1 required positional argument: 'mask'",
        ]
    )
    assert (actual.fault, actual.origin) == (FaultClass.USER_CODE, Origin.USER)
    assert actual.culprit == "rank 5"


def test_frames_in_a_dataset_make_it_the_data_loader() -> None:
    """The same exception raised inside a dataset is about data."""
    actual = classify(
        log=[
            "Traceback (most recent call last):",
            '  File "/home/u/my_dataset.py", line 10, in __getitem__',
            "IndexError: list index out of range",
        ]
    )
    assert actual.fault is FaultClass.DATA_LOADER


def test_torchruns_summary_names_rank_and_host() -> None:
    """The block names where the first child failed; a class needs another line."""
    actual = classify(
        log=[
            "ValueError: batch size must be positive",
            "Root Cause (first observed failure):",
            "  host      : g12",
            "  rank      : 6 (local_rank: 6)",
            "  exitcode  : 1 (pid: 9)",
        ]
    )
    assert actual.culprit == "rank 6 on g12"


def test_the_host_comes_from_other_lines_of_the_same_log() -> None:
    """The deciding line names the rank; the victims' lines around it name the machine."""
    actual = classify(
        log=[
            "g27:1:2 [0] NCCL WARN socketProgress: Connection closed by remote peer g3<1>",
            "[rank221]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
        ]
    )
    assert actual.culprit == "rank 221 on g27"


def test_time_decides_between_unrelated_causes() -> None:
    """The earlier of two unrelated faults wins."""
    early = "2026-07-05 03:00:00 OSError: [Errno 5] Input/output error: '/ckpt/x'"
    late = "2026-07-05 03:20:00 RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error."
    assert classify(a=[late], b=[early]).fault is FaultClass.STORAGE_CHECKPOINT


def test_two_ranks_on_one_line_are_both_named() -> None:
    """Numbered groups are alternatives of one name; where both match, both count."""
    actual = classify(
        log=["NCCL WARN Duplicate GPU detected : rank 3 and rank 1 both on CUDA device 1000"]
    )
    assert actual.culprit_ranks == (1, 3)


MMU_FAULT = (
    "Jul  5 03:10:12 g7 kernel: NVRM: Xid (PCI:0000:9b:00): 31, pid=9, name=python, MMU Fault"
)
SWITCH_TIMEOUT = "Jul  5 03:{} g7 kernel: NVRM: Xid (PCI:0000:{}:00): 109, pid=9, name=python, CTX SWITCH TIMEOUT"


def test_a_gpu_that_times_out_after_an_exception_is_the_programs() -> None:
    """The driver ends a process whose kernel faulted; what times out meanwhile began with it."""
    actual = classify(log=[MMU_FAULT, SWITCH_TIMEOUT.format("10:50", "9b")])
    assert actual.fault is FaultClass.USER_CODE


def test_a_time_out_before_it_or_on_another_gpu_is_the_drivers() -> None:
    """Only what follows on the same GPU is the exception's."""
    before = [SWITCH_TIMEOUT.format("09:50", "9b"), MMU_FAULT]
    elsewhere = [MMU_FAULT, SWITCH_TIMEOUT.format("10:50", "1a")]
    for lines in (before, elsewhere):
        assert classify(log=lines).fault is FaultClass.DRIVER_FIRMWARE, lines


def test_a_line_that_only_says_failed_outranks_none_that_says_what() -> None:
    """The driver's objects complain before and after the error that they complain of."""
    vague = "kernel: NVRM: GPU1 kbifReadRegister_GB100: Unable to read NV_PF0_STATE"
    exact = "kernel: NVRM: Xid (PCI:0000:9b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11"
    assert classify(log=[vague]).fault is FaultClass.DRIVER_FIRMWARE
    assert classify(log=[vague, exact]).fault is FaultClass.NVLINK


def test_what_came_first_is_no_victim_of_what_it_may_cause() -> None:
    """A file server that stops answering did not unplug the cable half a minute before."""
    lines = [
        "Dec  4 08:10:31 g7 kernel: be2net 0000:af:00.0: Error detected in the adapter, UNRECOVERABLE",
        "Dec  4 08:11:12 g7 kernel: nfs: server filer2 not responding, still trying",
    ]
    assert classify(kernel=lines).fault is FaultClass.NETWORK_ETH
