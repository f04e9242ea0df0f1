"""What a line's own program calls information is no alarm, unless a rule knows the line."""

import pytest

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.judge import judge
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.severity import is_below_warning
from brctl.evidence.logs.unexplained import UNEXPLAINED
from brctl.evidence.logs.words.components import component_event
from brctl.model.fault import FaultClass

INDEX = LineIndex(SHIPPED)
INFORMATION = [
    "I0329 09:40:34.116795   28787 factory.go:82] Factory was unable to handle nvme0, failed",
    "kubelet[812]: I0904 18:36:26.519661 844 nvme0 lookup failed",
    'time="2026-02-01T08:00:00Z" level=info msg="nvme0 probe failed, trying next"',
    '{"level": "debug", "msg": "nvme0 failed"}',
    "[1595961791][INFO]nvme0 trip critical failed",
    "<6>nvme0 failed",
    "23:54:39,681 INFO mounter: nvme0 failed",
    "[2026-01-29 08:44:08.050608] D [socket.c:2946:handler] 0-transport: nvme0 failed",
    "pengine[26674]:  notice: nvme0 failed",
]
WORSE = [
    "E0329 09:40:34.116795   28787 factory.go:82] Factory was unable to handle nvme0, failed",
    'time="2026-02-01T08:00:00Z" level=error msg="nvme0 probe failed"',
    "<3>nvme0 failed",
    "23:54:39,681 ERROR mounter: nvme0 failed",
    "nvme0 failed",
    "host:1:2 [0] NCCL INFO nvme0 failed",
    "Information: nvme0 failed",
]
STEPS = tuple(f"step {n} | loss: 2.{n} | grad norm: 1.0" for n in range(300, 306))
QUOTES_ANOTHER_LEVEL = [
    "2026-02-01 08:00:00 ERROR launcher: vllm --log-level=info died; rank 3 aborted",
    "2026-02-01 08:00:00 launcher: vllm --log-level=info died; rank 3 aborted",
    "2026-02-01 08:00:00 ERROR launcher: child died, its last line: [INFO] saving; aborting",
    "E0501 12:00:00.123456 99 launcher.go:12] worker exited, err: level=info msg=x; peer refused",
    "ERROR launcher: child failed, level=info text=saving",
    '{"severity":"INFO","message":"[rank3] ERROR: tensor store refused the handshake, aborting"}',
    '{"severity":"INFO","pod":"' + 200 * "x" + '","message":"[rank3] ERROR: store refused it"}',
]


@pytest.mark.parametrize("line", INFORMATION)
def test_information_accuses_nobody(line: str) -> None:
    """Neither the component that it names nor its words of alarm count."""
    assert is_below_warning(line)
    assert component_event({1: line}, "a.log", lambda _: False) is None
    reader = LineReader("a.log", INDEX)
    reader.read(1, line.encode())
    assert [e for e in reader.events() if e.signature is UNEXPLAINED] == []


@pytest.mark.parametrize("line", WORSE)
def test_a_line_without_such_a_level_is_read_by_its_words(line: str) -> None:
    """NCCL prints its failures as information."""
    assert not is_below_warning(line)
    assert component_event({1: line}, "a.log", lambda _: False) is not None


@pytest.mark.parametrize("line", QUOTES_ANOTHER_LEVEL)
def test_a_stated_error_counts_though_its_line_quotes_information(line: str) -> None:
    """Behind sound steps it is an alarm that nobody knows, whatever level a collector stamps."""
    reader = LineReader("a.log", INDEX)
    for number, text in enumerate((*STEPS, line), 1):
        reader.read(number, text.encode())
    assert judge("a.log", reader.events()).fault is not FaultClass.NO_FAULT


def test_what_a_collector_stamps_counts_where_the_message_states_no_level() -> None:
    """Else every record of a program that logs in JSON would be an alarm by its words."""
    reader = LineReader("a.log", INDEX)
    reader.read(1, b'{"severity":"INFO","message":"nvme0 probe failed, trying next"}')
    assert [e for e in reader.events() if e.signature is UNEXPLAINED] == []


def test_what_a_rule_knows_counts_at_any_level() -> None:
    """Many programs print the cause as information."""
    reader = LineReader("a.log", INDEX)
    reader.read(1, b"12:00:01,000 INFO kernel: Out of memory: Killed process 812 (python)")
    assert judge("a.log", reader.events()).fault is FaultClass.CPU_OOM
