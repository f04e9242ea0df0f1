"""What NVSwitch's SXid numbers mean, by NVIDIA's three classes.

Source: Fabric Manager guide as encoded by gpud (leptonai/gpud 4a8de33a, read 2025-10-29). Field
practice is softer: Imbue's whitelist passes every "Non-fatal" line. So only the always-fatal
numbers convict; a potentially fatal one convicts when the line itself says Fatal. A GPU that fell
off the bus makes every switch print 20034 seconds later: the GPU is to blame, not the switch.
"""

from collections.abc import Mapping
from enum import StrEnum


class Severity(StrEnum):
    """NVIDIA's class of an SXid."""

    ALWAYS_FATAL = "always fatal"
    POTENTIALLY_FATAL = "potentially fatal"
    NON_FATAL = "non-fatal"
    UNKNOWN = "not in the table"


FOLLOWS_A_LOST_GPU = 20034

_ALWAYS_FATAL: Mapping[int, str] = {
    12020: "egress sequence ID error",
    22003: "Minion Halt",
    22011: "Minion exterror",
    23001: "ingress SRC-VC buffer overflow",
    23002: "ingress SRC-VC buffer underflow",
    23003: "egress DST-VC credit overflow",
    23004: "egress DST-VC credit underflow",
    23005: "ingress packet burst error",
    23006: "ingress packet sticky error",
    23007: "possible bubbles at ingress",
    23008: "ingress packet invalid dst error",
    23009: "ingress packet parity error",
    23010: "ingress SRC-VC buffer overflow",
    23011: "ingress SRC-VC buffer underflow",
    23012: "egress DST-VC credit overflow",
    23013: "egress DST-VC credit underflow",
    23014: "ingress packet burst error",
    23015: "ingress packet sticky error",
    23016: "possible bubbles at ingress",
    23017: "ingress credit parity error",
    10003: "Host_unhandled_interrupt",
}

_POTENTIALLY_FATAL: Mapping[int, str] = {
    11001: "ingress invalid command",
    11009: "ingress invalid VCSet",
    11013: "ingress header DBE",
    11018: "ingress RID DBE",
    11019: "ingress RLAN DBE",
    11020: "ingress control parity",
    12001: "egress crossbar overflow",
    12002: "egress packet route",
    12022: "egress input ECC DBE error",
    12024: "egress output ECC DBE error",
    12025: "egress credit overflow",
    12026: "egress destination request ID error",
    12027: "egress destination response ID error",
    12030: "egress control parity error",
    12031: "egress credit parity error",
    12032: "egress flit type mismatch",
    14017: "TS ATO timeout",
    15001: "route buffer over/underflow",
    15006: "route transdone over/underflow",
    15009: "route GLT DBE",
    15010: "route parity",
    15012: "route incoming DBE",
    15013: "route credit parity",
    19047: "NCISOC HDR ECC DBE Error",
    19048: "NCISOC DAT ECC DBE Error",
    19054: "HDR RAM ECC DBE Error",
    19056: "DAT0 RAM ECC DBE Error",
    19058: "DAT1 RAM ECC DBE Error",
    19060: "CREQ RAM HDR ECC DBE Error",
    19061: "CREQ RAM DAT ECC DBE Error",
    19063: "Response RAM HDR ECC DBE Error",
    19064: "Response RAM DAT ECC DBE Error",
    19066: "COM RAM HDR ECC DBE Error",
    19067: "COM RAM DAT ECC DBE Error",
    19069: "RSP1 RAM HDR ECC DBE Error",
    19070: "RSP1 RAM DAT ECC DBE Error",
    20034: "LTSSM Fault Up",
    22012: "Minion Link NA interrupt",
    24004: "sourcetrack TCEN0 crubmstore DBE",
    24005: "sourcetrack TCEN0 TD crubmstore DBE",
    24006: "sourcetrack TCEN1 crubmstore DBE",
    24007: "sourcetrack timeout error",
    10001: "Host_priv_error",
    10002: "Host_priv_timeout",
    10004: "Host_thermal_event_start",
    10005: "Host_thermal_event_end",
}

_NON_FATAL: Mapping[int, str] = {
    11004: "Ingress invalid ACL",
    20001: "TX Replay Error",
    12028: "egress nonposted PRIV error",
    19084: "AN1 Heartbeat Timeout Error",
    22013: "Minion Link DLREQ interrupt",
    20012: "Broken/inconsistent connection",
    20009: "RX Short Error Rate",
}

_SINGLE_BIT_ECC = (
    11012, 11021, 11022, 11023, 12021, 12023, 15008, 15011, 19049, 19055, 19057, 19059, 19062,
    19065, 19068, 19071, 24001, 24002, 24003,
)  # fmt: skip

SXIDS: Mapping[int, tuple[Severity, str]] = {
    **{code: (Severity.ALWAYS_FATAL, text) for code, text in _ALWAYS_FATAL.items()},
    **{code: (Severity.POTENTIALLY_FATAL, text) for code, text in _POTENTIALLY_FATAL.items()},
    **{code: (Severity.NON_FATAL, text) for code, text in _NON_FATAL.items()},
    **{code: (Severity.NON_FATAL, "single-bit ECC error") for code in _SINGLE_BIT_ECC},
}


def find_sxid(code: int) -> tuple[Severity, str]:
    """Severity and meaning of a number."""
    return SXIDS.get(code, (Severity.UNKNOWN, "not in the Fabric Manager guide's list"))
