"""Where no rule knows a line, the component that reports failures is named, and only one."""

import pytest

from brctl.evidence.logs.claim import CLAIMED
from brctl.evidence.logs.signature import Part
from brctl.evidence.logs.words.components import component_event
from brctl.model.fault import FaultClass, Origin

FAILING = {
    "storage-checkpoint": "mpt9sas_cm1: firmware event queue is stuck, host blocked",
    "numeric-nan": "20 images/sec: 6653.0 +/- 183.1 (jitter = 813.2) nan",
    "network-ib": "mlx5_4: asynchronous command 0x9 aborted",
    "network-link": "swss: Port Ethernet51 oper state set from up to down",
    "network-switch": "%PLATFORM-2-FABRIC: module 3 offline",
    "nvlink": "         Link 3: <inactive>",
    "disk-full": "rsync: quota of the group reached, write failed",
    "user-code": "E  AcceleratorError: CUDA error: an illegal memory access",
    "driver-firmware": "mlx5_core: probe of 0000:01:00.0 failed with error -22",
    "cpu-oom": "worker failed: out of memory",
    "gpu-oom": "error: device 3 ran out of memory",
    "gpu-lost": "|   0  ERR!                Off  | 00000000:00:1E.0 Off |                 ERR! |",
    "pcie": "pcieport 000d:00:01.0: bridge window [io size 0x1000]: can't assign; no space",
    "thermal-power": "slot 2 PSU2 input degraded",
    "network-eth": "vobd: watchdog timeout occurred on uplink vmnic3",
    "node-failure": "prdf: Hardware Callout, core deconfigured, Error 0xE500",
    "data-loader": "unexpected end of data, part 00000022.tar failed",
    "nccl-config": "socket creation failed: Address family not usable here",
    "environment-mismatch": "slurmd: fatal: Unable to determine this slurmd's NodeName",
}
SILENT = {
    "a counter at zero": "nvme0 media errors: 0",
    "what was corrected": "EDAC MC0: corrected errors on DIMM_A1 dropped",
    "an option": "nccl timeout = 1800, NCCL_TIMEOUT 1800",
    "advice": "if the link is down, check the cable",
    "a question": "is mlx5_0 down?",
    "code": "    raise OSError('nvme0 failed')",
    "a frame": "frame #2: c10d::watchdog() failed in mlx5_core.so",
    "no component": "something failed",
    "no failure": "mlx5_0 port 1 is up",
}


def unread(text: str) -> bool:
    """No rule reads any line."""
    return not text


def numbered(*lines: str) -> dict[int, str]:
    return dict(enumerate(lines, start=1))


@pytest.mark.parametrize(("fault", "line"), FAILING.items(), ids=FAILING)
def test_a_component_that_reports_a_failure_speaks_for_its_class(fault: str, line: str) -> None:
    """Weakly: any rule that knows a line outranks it."""
    event = component_event(numbered("all is quiet", line), "a.log", unread)
    assert event is not None
    assert (event.signature.fault, event.line) == (FaultClass(fault), 2)
    assert event.signature.part is Part.GENERIC


@pytest.mark.parametrize("line", SILENT.values(), ids=SILENT)
def test_what_reports_no_failure_of_a_component_says_nothing(line: str) -> None:
    assert component_event(numbered(line), "a.log", unread) is None


def test_a_line_that_a_rule_read_is_not_guessed_at() -> None:
    assert component_event(numbered("nvme0 failed"), "a.log", bool) is None


def test_several_components_name_nobody_and_one_that_says_most_is_named() -> None:
    """Half of the lines is not most of them."""
    both = numbered("nvme0 failed", "eth0 failed")
    assert component_event(both, "a.log", unread) is None
    event = component_event({**both, 3: "nvme1 timed out"}, "a.log", unread)
    assert event is not None
    assert (event.signature.fault, event.count) == (FaultClass.STORAGE_CHECKPOINT, 2)


def test_three_lines_weigh_more_than_one_and_fewer_than_needed_nothing() -> None:
    """Against a proof of health more than one line is asked for."""
    one, three = numbered("nvme0 failed"), numbered(*["nvme0 failed"] * 3)
    strengths = [
        event.signature.strength
        for event in (component_event(one, "a", unread), component_event(three, "a", unread))
        if event is not None
    ]
    assert len(strengths) == 2
    assert strengths[0] < strengths[1]
    assert component_event(one, "a", unread, needed=2) is None


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("network-ib", "n1:7:9 [0] NCCL WARN NET/IB: completion with error 4, vendor err 81"),
        ("network-ib", "        Physical state: Polling"),
        ("nccl-config", "n1:7:9 [0] NCCL WARN Duplicate GPU detected"),
        ("gpu-lost", "Unable to determine the device handle for GPU0000:03:00.0: Unknown Error"),
        ("node-failure", "gke-dev-default-pool-efca0068-4qq1   NotReady   3d   v1.6.1"),
    ],
)
def test_what_a_tool_says_of_a_port_a_device_or_a_node_speaks_for_its_class(
    fault: str, line: str
) -> None:
    event = component_event(numbered(line), "a.log", unread)
    assert event is not None
    assert event.signature.fault is FaultClass(fault)


def test_a_word_that_ordinary_lines_have_too_names_a_lead_only() -> None:
    """It is too weak to be claimed; three such lines are not."""
    line = "eth0: option not found"
    once = component_event(numbered(line), "a", unread)
    thrice = component_event(numbered(line, line, line), "a", unread)
    assert once is not None
    assert thrice is not None
    assert once.signature.strength**1.35 < CLAIMED < thrice.signature.strength**1.35


def test_a_daemon_that_does_not_start_is_the_infrastructures() -> None:
    event = component_event(numbered("slurmd: fatal: no config"), "a", unread)
    assert event is not None
    assert event.signature.side is Origin.INFRA


def test_a_task_that_waits_in_a_file_systems_code_waits_for_storage() -> None:
    """A call trace without its head is of the class of the code that most of its frames are in."""
    frames = [f"[99.{n}] [<ffffffffa03{n}>] ? fh_verify+0x277/0x477 [nfsd]" for n in range(4)]
    event = component_event(numbered(*frames, "[99.9] kthread+0x81/0x89"), "a.log", unread)
    assert event is not None
    assert event.signature.fault is FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize(("frames", "found"), [(4, False), (5, True)])
def test_a_call_trace_without_its_head_is_the_kernels(*, frames: int, found: bool) -> None:
    """Five frames are a trace, fewer are a mention."""
    lines = [
        f"Sep 06 23:00:03 kernel:  ? uvm_ioctl_{n}+0x16c9/0x1cd0 [nvidia_uvm]"
        for n in range(frames)
    ]
    event = component_event(numbered(*lines), "a.log", unread)
    assert (event is not None and event.signature.fault is FaultClass.HOST_KERNEL) is found


def test_a_daemon_that_uses_a_device_has_no_say_against_the_component_itself() -> None:
    """What a desktop could not do to a screen, or a screen that dims, is no memory module."""
    event = component_event(
        numbered(
            "Aug 07 17:19:17 n4 powerd[812]: could not set the fan, timeout",
            "Aug 07 17:19:17 n4 powerd[812]: dimming the panel failed",
            "Aug 07 17:19:18 n4 kernel: GSP task watchdog timeout @ pc:0x1250c5c",
        ),
        "a.log",
        unread,
    )
    assert event is not None
    assert event.signature.fault is FaultClass.DRIVER_FIRMWARE
