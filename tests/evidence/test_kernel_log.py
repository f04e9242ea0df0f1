"""Kernel lines are understood whatever printed them, and never hurt who reads them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brctl.evidence import kernel_ends
from brctl.evidence.kernel_ends import RESET_MARK, overs
from brctl.evidence.kernel_line import parse_kernel_line
from brctl.evidence.kernel_log import judge_kernel_lines, judge_xid_lines
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signatures.kernel import SIGNATURES
from brctl.evidence.reading import Reading
from brctl.evidence.sxid import SXIDS, Severity
from brctl.evidence.xid import XIDS, find_xid
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Role, Weight
from brctl.model.sweeps.check import MeasurementSpec
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus
from tests.evidence.logs.examples import EXAMPLES

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
MESSAGE = "NVRM: Xid (PCI:0000:4b:00): 79, GPU has fallen off the bus."


def judge(*lines: str, uuids: tuple[tuple[str, str], ...] = ()) -> Reading:
    result = CheckResult(
        "gpu.xid",
        ProbeStatus.MEASURED,
        (
            Measurement("gpu.xid.uptime_s", "", 4000.0),
            *(Measurement("gpu.xid.line", "", line) for line in lines),
        ),
    )
    devices = CheckResult(
        "gpu.devices",
        ProbeStatus.MEASURED,
        tuple(Measurement("gpu.device.pci", subject, pci) for subject, pci in uuids),
    )
    report = NodeReport("n1", Outcome.ANSWERED, (devices, result), received_at=NOW)
    return judge_xid_lines(report, result, MeasurementSpec("gpu.xid.line", "text", "line"))


def test_what_came_before_a_reset_of_the_gpus_is_history() -> None:
    """It is still told, but convicts nobody; the same Xid after the reset does."""
    mark = f"6,20,3995000000,-;{RESET_MARK}"
    before, after = f"3,1,3990000000,-;{MESSAGE}", f"3,30,3999000000,-;{MESSAGE}"
    (old,) = judge(before, mark).evidence[:1]
    assert (old.weight, old.role) == (Weight.CONTEXT, Role.CONTEXT)
    assert old.text.endswith("; older than the reset of the GPUs, so history")
    old, new = judge(before, mark, after).evidence
    assert (old.weight, new.weight) == (Weight.CONTEXT, Weight.CONVICTS)


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "out of order"])
def test_what_came_before_the_driver_was_loaded_again_is_history(turned: bool) -> None:
    """By the kernel's clock, however the lines arrive; what came after it convicts."""
    load = "6,20,3995000000,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.148.08"
    lines = [f"3,1,3990000000,-;{MESSAGE}", load]
    (old,) = judge(*(reversed(lines) if turned else lines)).evidence[:1]
    assert (old.weight, old.role) == (Weight.CONTEXT, Role.CONTEXT)
    (new,) = judge(load, f"3,30,3999000000,-;{MESSAGE}").evidence
    assert new.weight is Weight.CONVICTS


@pytest.mark.parametrize(
    "line",
    [
        MESSAGE,
        f"3,1234,3990000000,-;{MESSAGE}",
        f"<3>[ 3990.000000] {MESSAGE}",
        f"[ 3990.000000] {MESSAGE}",
        f"[Sat Jan 10 11:59:50 2026] {MESSAGE}",
        f"kern  :err   : [ 3990.000000] {MESSAGE}",
        f"kern  :warn  : 2026-01-10T11:59:50,123456+00:00 {MESSAGE}",
        f"2026-01-10T11:59:50.123456+00:00 gpu017 kernel: {MESSAGE}",
        f"Jan 10 11:59:50 gpu017 kernel: [ 3990.000000] {MESSAGE}",
    ],
)
def test_every_printer_of_a_line_is_understood(line: str) -> None:
    """The message is the same behind every prefix, and so is the judgement."""
    assert parse_kernel_line(line).message == MESSAGE
    (found,) = judge(line).evidence
    assert (found.kind, found.subject.device) == ("gpu.xid.79", "pci:0000:4b:00.0")
    assert found.weight is Weight.CONVICTS


def test_a_kernel_time_becomes_a_moment() -> None:
    """Ten seconds before the answer, by the node's uptime."""
    (found,) = judge(f"[ 3990.000000] {MESSAGE}").evidence
    assert found.at == NOW - timedelta(seconds=10)


def test_the_pci_domain_is_not_the_code() -> None:
    """The first number after Xid is an address."""
    (found,) = judge("NVRM: Xid (0079:4b:00): 31, pid=1").evidence
    assert found.kind == "gpu.xid.31"


def test_a_gpu_that_nvml_knows_is_named_by_uuid() -> None:
    """Addresses become uuids where gpu.devices could read them."""
    (found,) = judge(MESSAGE, uuids=(("gpu:GPU-7", "0000:4B:00.0"),)).evidence
    assert found.subject.device == "gpu:GPU-7"


def test_a_lost_gpu_is_named_by_the_driver_itself() -> None:
    """NVML cannot give the uuid of a lost GPU; the line before the Xid can."""
    (found,) = judge("NVRM: GPU at PCI:0000:4b:00: GPU-5d3a1c42-0000", MESSAGE).evidence
    assert found.subject.device == "gpu:GPU-5d3a1c42-0000"


def test_a_thousand_repeats_are_one_judgement() -> None:
    """The same event on the same device is said once, with its count."""
    (found,) = judge(*[MESSAGE] * 1000).evidence
    assert "1000 times" in found.text


def test_peers_of_a_lost_gpu_are_victims() -> None:
    """Link errors beside a lost GPU blame nobody else."""
    found = judge(MESSAGE, "NVRM: Xid (PCI:0000:5b:00): 74, pid=1, NVLink: fatal error").evidence
    peer = next(e for e in found if e.kind == "gpu.xid.74")
    assert (peer.role, peer.weight) == (Role.VICTIM, Weight.CONTEXT)


def test_the_drivers_recovery_action_is_quoted() -> None:
    """Xid 154 says what the driver wants done."""
    change = "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
    line = f"NVRM: Xid (PCI:0000:4b:00): 154, {change}"
    (found,) = judge(line).evidence
    assert "the driver asks to: drain and reset" in found.text


def test_disagreeing_sources_are_shown() -> None:
    """63, 68 and 92 are not smoothed over."""
    assert "disagree" in find_xid(63).disagreement
    assert "disagree" in find_xid(92).disagreement
    assert find_xid(79).disagreement == ""


def test_an_unknown_xid_is_suspect() -> None:
    """A number newer than the table hints; it is not ignored."""
    assert find_xid(999).weight is Weight.HINTS


def test_the_tables_agree_with_themselves() -> None:
    """Every row that blames has a class, and the counts are NVIDIA's."""
    assert all(x.fault is not None for x in XIDS.values() if x.weight is not Weight.CONTEXT)
    by_class = [severity for severity, _ in SXIDS.values()]
    assert by_class.count(Severity.ALWAYS_FATAL) == 21
    assert by_class.count(Severity.POTENTIALLY_FATAL) == 46
    assert by_class.count(Severity.NON_FATAL) == 26
    assert all(s.fault for s in SIGNATURES if s.weight is not Weight.CONTEXT)


# Programs, not the kernel, write that a device is full; what they were doing decides then.
LINES = [line for lines in EXAMPLES.values() for line in lines if "No space left" not in line]
KERNEL_LINES = [
    *(line for line in LINES if "\n" not in line),
    "NVRM: API mismatch: the client has the version 550.54.15",
    "NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x23:0x65:1401)",
    "eno1: NIC Link is Down",
    "mlx5_core 0000:5e:00.0 mlx5_3: Port: 1 Link DOWN",
    "pcieport 0000:80:01.1: AER: Uncorrectable (Non-Fatal) error received: 0000:81:00.0",
    "mlx5_core 0000:9a:00.0: Port module event[error]: module 1, Cable error, High Temperature",
    "blk_update_request: I/O error, dev sda, sector 12345",
    "nvidia-nvswitch2: SXid (PCI:0000:05:00.0): 22003, Link 12 Minion Halt",
    "nvidia-nvswitch2: SXid (PCI:0000:05:00.0): 11001, Link 12 ingress invalid command",
    "nvidia-nvswitch2: SXid (PCI:0000:05:00.0): 11001, Non-fatal, Link 12 ingress invalid command",
    "nvidia-nvswitch2: SXid (PCI:0000:05:00.0): 20001, Link 12 TX Replay Error",
]


@pytest.mark.parametrize("line", KERNEL_LINES, ids=lambda line: line[:50])
def test_a_check_and_a_log_class_a_kernel_line_alike(line: str) -> None:
    """One table and one classifier: the same class, and as sure of it."""
    result = CheckResult("x", ProbeStatus.MEASURED, (Measurement("line", "", line),))
    report = NodeReport("n1", Outcome.ANSWERED, (result,), received_at=NOW)
    spec = MeasurementSpec("line", "text", "line")
    readings = (judge_xid_lines(report, result, spec), judge_kernel_lines(report, result, spec))
    for item in (item for reading in readings for item in reading.evidence):
        if item.weight in (Weight.HINTS, Weight.CONVICTS):
            reader = LineReader("log", LineIndex(SHIPPED))
            reader.read(1, line.encode())
            roots = [e.signature for e in reader.events() if e.signature.weight != Weight.CONTEXT]
            assert (item.fault, item.weight) in {(s.fault, s.weight) for s in roots}, roots


@given(st.text(max_size=3000))
def test_no_line_can_break_the_reader(text: str) -> None:
    """Any text is read in bounded time and gives bounded evidence."""
    result = CheckResult("x", ProbeStatus.MEASURED, (Measurement("line", "", text),))
    report = NodeReport("n1", Outcome.ANSWERED, (result,), received_at=NOW)
    spec = MeasurementSpec("line", "text", "line")
    for reading in (
        judge_xid_lines(report, result, spec),
        judge_kernel_lines(report, result, spec),
    ):
        assert all(len(e.raw) <= 1024 and len(e.text) <= 1024 for e in reading.evidence)


UNITS = ["[", "1,", "NVRM: Xid (", "task ", "mlx5_", "Jan 10 ", "<1>", "kernel: "]


LINE_CHARACTERS = 24_000
READ_S = 0.4
"""Of this process's own time: a pattern in proportion to the line needs a hundredth of it."""


@pytest.mark.parametrize("unit", UNITS)
def test_repetition_makes_no_pattern_backtrack(unit: str) -> None:
    """A line made of one prefix over and over costs in proportion to its length, not its square."""
    line = (unit * LINE_CHARACTERS)[:LINE_CHARACTERS]
    reads: dict[str, Callable[[], object]] = {"the prefix": lambda: parse_kernel_line(line)}
    reads |= {row.name: partial(row.compiled.search, line) for row in SIGNATURES}
    # The quicker of two tries: a busy machine may hold up either.
    spent = {name: min(cpu_seconds(read), cpu_seconds(read)) for name, read in reads.items()}
    assert {name: seconds for name, seconds in spent.items() if seconds > READ_S} == {}


def test_a_pattern_that_backtracks_would_be_seen() -> None:
    """The bound is one that a quadratic pattern breaks on this very line."""
    line = ("1," * LINE_CHARACTERS)[:LINE_CHARACTERS]
    assert cpu_seconds(partial(re.compile(r"(?:[\d,]+)x").search, line)) > READ_S


def cpu_seconds(work: Callable[[], object]) -> float:
    began = process_time()
    work()
    return process_time() - began


@pytest.mark.parametrize(
    ("trouble", "over", "other"),
    [
        (
            "nfs: server fs1 not responding, still trying", "nfs: server fs1 OK",
            "nfs: server fs2 OK",
        ),
        (
            "CPU12: Core temperature above threshold, cpu clock throttled (total events = 1)",
            "CPU12: Core temperature/speed normal", "CPU13: Core temperature/speed normal",
        ),
        (
            "CPU4: Package temperature is above threshold, cpu clock is throttled"
            " (total events = 2)",
            "CPU4: Package temperature/speed normal", "CPU4: Core temperature/speed normal",
        ),
    ],
)  # fmt: skip
def test_what_the_kernel_says_is_over_is_history(trouble: str, over: str, other: str) -> None:
    """Of the same server or core, and said after it."""
    assert weights(trouble, over) == {Weight.CONTEXT}
    for still in ((trouble,), (trouble, other), (over, trouble), (trouble, over, trouble)):
        assert weights(*still) & {Weight.HINTS, Weight.CONVICTS}


HOT = "CPU3: Core temperature above threshold, cpu clock throttled (total events = 7)"
COOL = "CPU3: Core temperature/speed normal"
SILENT, BACK = "nfs: server fs1 not responding, timed out", "nfs: server fs1 OK"


def test_what_ends_three_times_is_not_over() -> None:
    """Linux writes an end after each line of a throttling that goes on, 0.9 ms later."""
    assert weights(*[HOT, COOL] * 2) == {Weight.CONTEXT}
    assert weights(*[HOT, COOL] * 90) & {Weight.HINTS, Weight.CONVICTS}


def test_a_package_is_not_cool_because_a_core_is() -> None:
    package = HOT.replace("Core", "Package")
    assert weights(package, COOL) & {Weight.HINTS, Weight.CONVICTS}


def test_each_process_tells_of_one_silence_of_a_server() -> None:
    assert weights(*[SILENT] * 20, *[BACK] * 20) == {Weight.CONTEXT}


def test_a_log_with_a_trouble_that_ended_clears_nobody() -> None:
    """It is dated by its end, which says whether a job's steps came after it."""
    (found,) = host_evidence(SILENT, BACK)
    assert (found.kind, found.at) == ("host.kernel.nfs_hangs.ended", NOW - timedelta(seconds=9))
    assert [item.weight for item in host_evidence("eth0: quiet")] == [Weight.CLEARS]


def test_a_log_of_troubles_and_their_ends_is_looked_through_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted in searches and not in seconds: two or three for each line."""
    counting = {kind: Counting(pattern) for kind, pattern in kernel_ends._ENDS.items()}
    monkeypatch.setattr(kernel_ends, "_ENDS", counting)
    lines = [parse_kernel_line(text) for text in (SILENT, BACK) for _ in range(500)]
    kinds = ["host.kernel.nfs_hangs"] * 500 + [""] * 500
    assert all(over.why for over in overs(list(zip(lines, kinds, strict=True)))[:500])
    assert sum(pattern.searches for pattern in counting.values()) <= 3 * len(lines)


class Counting:
    """A pattern that counts its searches."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.searches = pattern, 0

    def search(self, text: str) -> re.Match[str] | None:
        self.searches += 1
        return self.pattern.search(text)


def weights(*lines: str) -> set[Weight]:
    return {item.weight for item in host_evidence(*lines)}


def host_evidence(*lines: str) -> tuple[Evidence, ...]:
    """Of lines a second apart, the first ten seconds ago."""
    rows = [f"4,{n},{3990 + n}000000,-;{text}" for n, text in enumerate(lines)]
    result = CheckResult(
        "host.kernel", ProbeStatus.MEASURED,
        (
            Measurement("host.kernel.uptime_s", "", 4000.0),
            Measurement("host.kernel.lines_read", "", 180),
            *(Measurement("host.kernel.line", "", row) for row in rows),
        ),
    )  # fmt: skip
    report = NodeReport("n1", Outcome.ANSWERED, (result,), received_at=NOW)
    spec = MeasurementSpec("host.kernel.line", "text", "line")
    return judge_kernel_lines(report, result, spec).evidence
