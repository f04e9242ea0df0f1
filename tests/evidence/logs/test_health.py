"""No-fault needs a proof of health that is newer than every warning."""

# ruff: noqa: E501 - a log line is quoted whole

import json
from collections.abc import Sequence

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.unexplained import is_alarming
from brctl.model.fault import FaultClass
from brctl.model.log_verdict import LogVerdict

INDEX = LineIndex(SHIPPED)
STEPS = tuple(f"step {n} | loss: 2.{n} | grad norm: 1.0" for n in range(300, 306))
STRANGE = "fluxd[81]: capacitor bank 3 failed to align, code 77"


def classify(*lines: str) -> LogVerdict:
    reader = LineReader("rank-00000.log", INDEX)
    for number, line in enumerate(lines, 1):
        reader.read(number, line.encode())
    return judge("rank-00000.log", reader.events())


@pytest.mark.parametrize(
    "proof",
    [
        STEPS,
        ("Training completed.",),
        ("`Trainer.fit` stopped: `max_epochs=5` reached.",),
        ("812.batch  batch  acct  8  COMPLETED      0:0",),
        ("# Out of bounds values : 0 OK",),
        ("| Memory                    | Pass                                           |",),
        ('{"key": "run_stop", "metadata": {"status": "success"}}',),
        ("process finished with exit code 0",),
        ("g3 login:",),
        ("         Link 4: CRC Errors: 0",),
        ("GPU[3]          : Temperature (Sensor junction) (C): 41.0",),
        (">   4/9  31.2G  0.81  0.44  37  640: 100% ━━━━━━━━━━━━ 205/205 6.4it/s 32.1s",),
    ],
    ids=lambda lines: str(lines[-1])[:40],
)
def test_a_proof_makes_it_no_fault_and_an_error_after_it_does_not(proof: Sequence[str]) -> None:
    """What ended well is well; an error that nobody knows and that comes later keeps it unknown."""
    assert classify(*proof).fault is FaultClass.NO_FAULT
    assert classify(*proof, STRANGE).fault is FaultClass.UNKNOWN


@pytest.mark.parametrize(
    "line",
    ["[test-run] step 100 train accuracy: 0.41", "epoch 3/90 | total training time: 341 s",
     "wandb: Run summary:", "wandb: Waiting for W&B process to finish... (failed 1).",
     "wandb: Synced 5 W&B file(s), 0 media file(s) and 2 artifact file(s)"],
)  # fmt: skip
def test_what_a_run_prints_on_its_way_or_when_it_failed_proves_no_health(line: str) -> None:
    """Beside it stands what is printed at a good end alone."""
    assert classify(line).fault is FaultClass.UNKNOWN
    for ended in ("test accuracy: 0.91", "epoch 90/90 | total training time: 341 s",
                  "wandb: Waiting for W&B process to finish... (success)."):  # fmt: skip
        assert classify(ended).fault is FaultClass.NO_FAULT


@pytest.mark.parametrize(
    "line",
    ["ERROR: this message cannot be safely ignored", "ERROR: it is not safe to ignore this",
     "ERROR: it is not harmless", "ERROR: that can't be ignored",
     "[rank3] NCCL error: timeout. At exit it can be ignored"],
)  # fmt: skip
def test_an_alarm_that_denies_being_harmless_is_one(line: str) -> None:
    """And one that says it without a but is none."""
    assert classify(*STEPS, line).fault is not FaultClass.NO_FAULT
    for harmless in ("ERROR: this message can be safely ignored", "error 4, which is harmless"):
        assert classify(*STEPS, harmless).fault is FaultClass.NO_FAULT


def test_a_cause_stays_one_though_its_line_calls_it_harmless() -> None:
    """A program's word is believed where nothing else is known of the line."""
    lost = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus. This can be safely ignored"
    assert classify(*STEPS, lost).fault is FaultClass.GPU_LOST


def test_cron_at_work_proves_no_health() -> None:
    """The log of a machine that dies without a word ends so."""
    assert (
        classify("Nov 02 04:17:01 g3 CRON[811]: (root) CMD (test -x /x)").fault
        is FaultClass.UNKNOWN
    )


def test_a_hot_card_proves_no_health() -> None:
    """What a card answers is ordinary only within what it is built for."""
    said = classify("GPU[3]          : Temperature (Sensor junction) (C): 104.0")
    assert said.fault is FaultClass.UNKNOWN


def test_an_event_log_with_the_newest_record_first_is_read_by_its_stamps() -> None:
    """A management controller lists its newest event first: power that came back stays back."""
    records = [
        ("2026-03-04T05:30:09+00:00", "The power supplies are redundant."),
        ("2026-03-04T05:10:41+00:00", "Power supply redundancy is lost."),
    ]
    newest_first = [json.dumps({"Created": at, "Message": text}) for at, text in records]
    assert classify(*newest_first).fault is FaultClass.NO_FAULT
    lost_last = [
        json.dumps({"Created": at, "Message": text})
        for (at, _), (_, text) in zip(records, reversed(records), strict=True)
    ]
    assert classify(*lost_last).fault is FaultClass.THERMAL_POWER


@pytest.mark.parametrize(
    "guess",
    [
        "peer 4 is silent: its process has crashed, was preempted, or lost its network",
        "worker 7 left the group (it was killed or preempted)",
    ],
)
def test_one_of_several_guesses_is_no_cause(guess: str) -> None:
    """Who waits in vain lists what may have happened; nothing of it is known to have."""
    assert classify(guess).fault is not FaultClass.PREEMPTION_SIGTERM


def test_an_error_that_nobody_knows_is_shown_first() -> None:
    """Nobody may say that nothing is wrong, and a person sees at once what was odd."""
    said = classify("starting", STRANGE, "loading shards")
    assert said.fault is FaultClass.UNKNOWN
    assert said.evidence[0].text == STRANGE


def test_the_seldom_line_is_shown_before_the_frequent_one() -> None:
    """A line that stands once says more than one that stands a hundred times."""
    often = [f"gmond: could not reach collector {n}" for n in range(100)]
    said = classify(*often[:50], STRANGE, *often[50:])
    assert [line.count for line in said.evidence[:2]] == [1, 100]


def test_a_start_alone_is_no_proof() -> None:
    """Rows of options and of start-up do not say how it went on."""
    said = classify("--tensor-model-parallel-size 8", "building GPT model ...")
    assert said.fault is FaultClass.UNKNOWN


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. Skipping batch",
        "OSError: [Errno 5] Input/output error: '/data/shard-7', retry 1",
        "print from user code: CUDA error: an illegal memory access was encountered, handled",
        STRANGE,
    ],
)
def test_steps_after_an_error_show_that_it_was_survived(error: str) -> None:
    """A caught exception or a retry stops nobody; the same line at the end does."""
    assert classify(*STEPS[:3], error, *STEPS[3:]).fault is FaultClass.NO_FAULT
    assert classify(*STEPS, error).fault is not FaultClass.NO_FAULT


def test_steps_after_a_restart_do_not_excuse_the_failure_before() -> None:
    """The job ended and began anew: what ended it is still the answer."""
    error = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."
    ended = "E0705 torch/distributed/elastic: failed (exitcode: 1) local_rank: 0 (pid: 7)"
    assert classify(*STEPS, error, ended, *STEPS).fault is FaultClass.GPU_OOM


def test_steps_do_not_excuse_the_hardware() -> None:
    """A dying GPU is one whatever the log prints afterwards."""
    xid = "kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."
    assert classify(xid, *STEPS).fault is FaultClass.GPU_LOST


def test_a_server_that_answers_again_was_survived() -> None:
    """A hard mount waits; a soft mount that gave up has handed the program an error."""
    waits, back = "nfs: server fs1 not responding, still trying", "nfs: server fs1 OK"
    assert classify(waits).fault is FaultClass.STORAGE_CHECKPOINT
    assert classify(waits, back).fault is FaultClass.NO_FAULT
    gave_up = "nfs: server fs1 not responding, timed out"
    assert classify(gave_up, back).fault is FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[{t:.6f}] pcieport 0000:3a:00.0: AER: Corrected error message received from 0000:3b:00.0", FaultClass.PCIE),
        ("[{t:.6f}] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1)", FaultClass.NODE_FAILURE),
        ("[{t:.6f}] mce: [Hardware Error]: Corrected error, no action required.", FaultClass.NODE_FAILURE),
    ],
)  # fmt: skip
def test_corrected_errors_are_a_rate(line: str, fault: FaultClass) -> None:
    """One in many minutes is corrected and harmless; many a minute is a part that dies."""
    rare = [line.format(t=n * 1200.0) for n in range(1, 6)]
    storm = [line.format(t=5000.0 + n) for n in range(60)]
    assert classify(*rare).fault is FaultClass.NO_FAULT
    assert classify(*storm).fault is fault


@pytest.mark.parametrize(
    "text",
    [
        "step 5 error: 0.031",
        "errors: 0",
        "oom=0.000 failures=0",
        "timeout(ms): 1800000",
        "fault_tolerance enabled",
        "writing errors.log",
        "class OutOfMemoryHandler",
        "No errors found",
        "failed: None",
    ],
)
def test_zero_counters_options_and_names_are_no_alarm(text: str) -> None:
    """Words of alarm in a metric, an option or a name are not one."""
    assert not is_alarming(text)


@pytest.mark.parametrize(
    "text",
    [
        "unit failed",
        "ERROR no lease",
        "link timed out",
        "cannot open device",
        "3 errors",
        "disk offline",
    ],
)
def test_words_of_alarm_are_one(text: str) -> None:
    """The same words where they speak of something that went wrong."""
    assert is_alarming(text)


def test_a_sensor_that_recovered_settles_its_own_alarm_only() -> None:
    """One supply got its power back; the other still has none."""
    lost = "{} | 07/05/2026 | 03:0{}:00 | Power Supply PSU{} Status | Power Supply AC lost | {}"
    first, second = lost.format(1, 1, 1, "Asserted"), lost.format(2, 2, 2, "Asserted")
    back = lost.format(3, 3, 1, "Deasserted")
    assert classify(first, back).fault is FaultClass.NO_FAULT
    said = classify(first, second, back)
    assert said.fault is FaultClass.THERMAL_POWER
    assert str(said.culprit).endswith("Power Supply PSU2 Status")


def test_a_supply_that_failed_again_after_its_recovery_has_failed() -> None:
    """The newest state of a sensor counts, whatever stood between."""
    lost = "{} | 07/05/2026 | 03:0{}:00 | Power Supply PSU1 Status | Power Supply AC lost | {}"
    states = ("Asserted", "Deasserted", "Asserted")
    said = classify(*(lost.format(n, n, state) for n, state in enumerate(states)))
    assert said.fault is FaultClass.THERMAL_POWER


def test_a_sensor_that_comes_and_goes_is_not_well() -> None:
    """A supply that lost its input three times will lose it again."""
    line = "{} | 07/05/2026 | 03:{:02}:00 | Power Supply PSU1 Status | Power Supply AC lost | {}"
    states = ("Asserted", "Deasserted") * 3
    said = classify(*(line.format(n, n, state) for n, state in enumerate(states)))
    assert said.fault is FaultClass.THERMAL_POWER


def test_sensors_without_end_are_kept_in_bounds() -> None:
    """A log may invent a sensor on every line."""
    reader = LineReader("sel", INDEX)
    for number in range(3000):
        line = f"{number} | 07/05/2026 | 03:01:00 | Fan F{number} | Lower Critical going low | Asserted"
        reader.read(number, line.encode())
    assert len({event.family for event in reader.events()}) <= 1001


def test_one_line_that_reports_hundreds_is_no_single_error() -> None:
    """Without a clock errors count, not lines."""
    line = "EDAC MC1: {} CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0"
    assert classify(line.format(400)).fault is FaultClass.NODE_FAILURE
    assert classify(line.format(1)).fault is not FaultClass.NODE_FAILURE


def test_both_spellings_of_a_corrected_error_carry_their_own_count() -> None:
    """Forty errors of one report are forty, whichever program reports them."""
    for line in (
        "EDAC MC0: 40 CE memory read error on DIMM_A1",
        "mc_event: 40 Corrected errors: x",
    ):
        assert classify(*[f"[  {n}.000001] {line}" for n in range(9)]).fault is (
            FaultClass.NODE_FAILURE
        ), line


@pytest.mark.parametrize(
    "line",
    [
        "===== 31 passed, 2 skipped in 9.14s =====",
        "Result = PASS",
        "total images/sec: 1812.44",
        "epoch=0/micro_step=40/global_step=40, RunningAvgSamplesPerSec=51.7, CurrSamplesPerSec=52.0",
        "81/81 [=====] - 2s 20ms/step - loss: 0.31 - val_loss: 0.35",
        "Epoch 4/9 done in 88.1s, train loss 0.61",
        "[INFO] Done. Total time 3h12m",
        "Test set: Average loss: 0.0312, Accuracy: 9893/10000 (99%)",
        "881 State COMPLETED ExitCode 0:0 Elapsed 02:11:00",
    ],
)
def test_results_of_tests_and_rows_of_other_trainers_prove_health(line: str) -> None:
    """What only a job that went well prints is a proof, until a failure follows it."""
    assert classify(line).fault is FaultClass.NO_FAULT
    assert classify(line, "RuntimeError: CUDA error: out of memory").fault is FaultClass.GPU_OOM


LOADER_ENDS = (
    "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f12>",
    "Traceback (most recent call last):",
    '  File "/venv/lib/python3.11/site-packages/torch/utils/data/dataloader.py", line 1704, in __del__',
    "    self._shutdown_workers()",
    "RuntimeError: DataLoader worker (pid(s) 812) exited unexpectedly",
)


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_what_a_loader_raises_at_the_end_of_a_process_is_no_fault(prefix: str) -> None:
    """Python printed it and went on; the same words of a rank that ended are a fault."""
    ends = [prefix + line for line in LOADER_ENDS]
    assert classify(*STEPS, "Training completed.", *ends).fault is FaultClass.NO_FAULT
    assert classify(*STEPS, *ends[1:]).fault is FaultClass.DATA_LOADER


def test_another_exception_behind_an_ignored_one_is_read() -> None:
    """The ignored one ends with its own last line, and with any line that is none of it."""
    crash = ("Traceback (most recent call last):", '  File "/job/train.py", line 4, in <module>',
             "KeyError: 'warmup'")  # fmt: skip
    assert classify(*LOADER_ENDS, *crash).fault is FaultClass.USER_CODE
    cut_off = LOADER_ENDS[:3]
    assert classify(*cut_off, "ranks meet", *crash).fault is FaultClass.USER_CODE


@pytest.mark.parametrize(
    "line",
    [
        "input: CUDA out of memory. Tried to allocate 2.00 GiB",
        "hidden: CUDA error: device-side assert triggered",
        "rtcheck: NCCL error: unhandled system error, rank 3 aborted",
        "integrity: shard 7 of the checkpoint failed its digest, aborting",
        "Feb  1 08:00:00 g3 integrity: shard 7 failed its digest, aborting",
        "[  812.000001] input: CUDA error: device-side assert triggered",
        "i40e 0000:3d:00.0: PF reset failed, err -5 aq_err I40E_AQ_RC_EINVAL",
        "nvme nvme1: globally duplicate IDs for nsid 1: disk lookup failed",
        "nvme nvme1: failed to mark controller CONNECTING",
        "mdadm[812]: DeviceDisappeared event detected on md device /dev/md0: array failed",
        "timeout detected: no heartbeat from rank 7 for 60 s",
        "failure seen: none of the replicas answered",
    ],
)
def test_what_only_looks_like_a_known_harmless_line_counts(line: str) -> None:
    """Behind sound steps each is an alarm: who speaks, or one harmless word, settles nothing."""
    assert classify(*STEPS, line).fault is not FaultClass.NO_FAULT


@pytest.mark.parametrize(
    "line",
    ["[  812.000001] input: Logitech device failed to answer", "errors detected: 0, next at 9",
     "Feb  1 08:00:00 g3 kernel: hid-generic 0003:046D: probe failed with error -22",
     "Feb  1 08:00:00 g3 ntpd[81]: bind failed", "timeouts seen: none",
     "Feb  1 08:00:00 g3 kernel: [    9.1] rtc_cmos 00:01: unable to read the time"],
)  # fmt: skip
def test_a_part_that_no_job_uses_alarms_nobody(line: str) -> None:
    """The kernel and the node's daemons speak of radios, clocks and consoles all day."""
    assert classify(*STEPS, line).fault is FaultClass.NO_FAULT


ANSWERED = "sd 0:0:3:0: [{}] tag#1 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_OK"
REFUSED = "sd 0:0:3:0: [{}] tag#1 Add. Sense: Invalid command operation code"
SESSION_BACK = "iscsid: Connection1:0 to [target: a, portal: b] through [iface: c] is operational now"  # fmt: skip


@pytest.mark.parametrize(
    ("lost", "other", "own"),
    [
        ("connection1:0: detected conn error (1020)", SESSION_BACK.replace("1:0", "2:0"), SESSION_BACK),
        ("iscsid: Kernel reported iSCSI connection 1:0 error (1022)", SESSION_BACK.replace("1:0", "2:0"), SESSION_BACK),
        ("device-mapper: multipath: 253:3: Failing path 8:16.", "multipathd[8]: 8:32: reinstated", "multipathd[8]: 8:16: reinstated"),
        ("multipathd[8]: mpatha: remaining active paths: 0", "multipathd[8]: mpathb: remaining active paths: 2", "multipathd[8]: mpatha: remaining active paths: 1"),
        (ANSWERED.format("sdb"), REFUSED.format("sdj"), REFUSED.format("sdb")),
    ],
)  # fmt: skip
def test_the_end_of_one_devices_failure_settles_no_others(lost: str, other: str, own: str) -> None:
    """A session, a path and a disk are told apart by the name that both lines give."""
    started = "systemd[1]: Started Session 4 of user root"
    assert classify(lost, other, started).fault is FaultClass.STORAGE_CHECKPOINT
    assert classify(lost, own, started).fault is not FaultClass.STORAGE_CHECKPOINT


def test_a_disk_that_refuses_a_command_often_is_as_well_as_before() -> None:
    """Its sense says each time what the failure was; nothing came and went."""
    refused = (ANSWERED.format("sdb"), REFUSED.format("sdb")) * 4
    said = classify(*refused, "systemd[1]: Started Session 4 of user root")
    assert said.fault is not FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize(
    "lost",
    [
        "WARNING: Pool 'tank' has encountered an uncorrectable I/O failure and has been suspended.",
        "sd 2:0:0:0: rejecting I/O to offline device",
        "sd 0:0:1:0: [sdb] FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK",
        "sd 0:0:1:0: [sdb] Synchronize Cache(10) failed: Result: hostbyte=DID_NO_CONNECT",
        "md: super_written gets error=-5",
    ],
)
def test_a_session_or_a_refusal_settles_no_dead_device(lost: str) -> None:
    """Neither an iSCSI login nor a disk without an optional command brings a device back."""
    for over in (SESSION_BACK, REFUSED.format("sdj"), REFUSED.format("sdb")):
        said = classify(lost, over, "systemd[1]: Started Session 4 of user root")
        assert said.fault is FaultClass.STORAGE_CHECKPOINT


def test_what_names_no_sensor_is_settled_by_its_own_input() -> None:
    """A server that answers one node again may still be silent for another."""
    lost = b"2026-02-01T08:00:00Z n1 kernel: nfs: server fs1 not responding, still trying"
    back = b"2026-02-01T09:00:00Z n2 kernel: nfs: server fs1 OK"

    def read(*logs: tuple[str, bytes]) -> FaultClass:
        readers = {source: LineReader(source, INDEX) for source, _ in logs}
        for number, (source, line) in enumerate(logs, 1):
            readers[source].read(number, line)
        return judge("", [e for reader in readers.values() for e in reader.events()]).fault

    assert read(("n1", lost), ("n2", back)) is FaultClass.STORAGE_CHECKPOINT
    assert read(("n1", lost), ("n1", back)) is FaultClass.NO_FAULT


EXCEPTION = "kernel: ata3.00: exception Emask 0x0 SAct 0x40 SErr 0x0 action 0x6 frozen"
SET_UP = "kernel: ata3.00: configured for UDMA/133"
DOWN = "kernel: bond0: (slave {0}): link status definitely down, disabling slave"
UP = "kernel: bond0: (slave {0}): link status definitely up, 100000 Mbps full duplex"


def test_a_disk_that_was_set_up_again_is_well_unless_it_comes_and_goes() -> None:
    """One late answer is over; its end alone, which dead disks have too, is no recovery."""
    reset = ("kernel: ata3: hard resetting link", SET_UP, "kernel: ata3: EH complete")
    failed = "kernel: ata3.00: failed command: WRITE FPDMA QUEUED"
    assert classify(EXCEPTION, failed, *reset).fault is not FaultClass.STORAGE_CHECKPOINT
    assert classify(*(EXCEPTION, SET_UP) * 3).fault is FaultClass.STORAGE_CHECKPOINT
    dead = (EXCEPTION, "kernel: ata3.00: disabled", "kernel: ata3: EH complete")
    assert classify(*dead).fault is FaultClass.STORAGE_CHECKPOINT
    assert classify(EXCEPTION, SET_UP.replace("3", "4", 1)).fault is FaultClass.STORAGE_CHECKPOINT


def test_a_leg_of_a_bond_that_is_back_settles_its_own_loss_only() -> None:
    """Every leg of one bond is told apart; a bond that only says that its legs are up is well."""
    assert classify(UP.format("eth1")).fault is not FaultClass.NETWORK_LINK
    assert classify(DOWN.format("eth1"), UP.format("eth1")).fault is not FaultClass.NETWORK_LINK
    assert classify(DOWN.format("eth1"), UP.format("eth0")).fault is FaultClass.NETWORK_LINK
