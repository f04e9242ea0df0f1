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
    ],
)
def test_results_of_tests_and_rows_of_other_trainers_prove_health(line: str) -> None:
    """What only a job that went well prints is a proof, until a failure follows it."""
    assert classify(line).fault is FaultClass.NO_FAULT
    assert classify(line, "RuntimeError: CUDA error: out of memory").fault is FaultClass.GPU_OOM
