"""Switches, cables and the tools that read them.

Source: syslog mnemonics of NX-OS, IOS-XE, EOS and Junos (`%FACILITY-SEVERITY-MNEMONIC`), SONiC (swss, syncd, pmon),
NVOS and Cumulus, mlxsw; mlxlink, ethtool -m and UFM texts.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Signature, root
from brctl.model.fault import FaultClass

_OS = "switch operating systems"
_TOOL = "mlxlink, ethtool -m and UFM texts"

SIGNATURES: tuple[Signature, ...] = (
    root(FaultClass.NETWORK_SWITCH, "switch.hardware", ("-0-", "-1-", "-2-", "-3-"), 0.86, _OS,
         r"%\w+-[0-3]-(?:\w*(?:PEM|PSU|FAN|POWER|THERM|TEMP|ASIC|CRASH|RELOAD|RESET|FATAL|FAULT|PARITY|MODULE)\w*)\s*:", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.asic", ("mlxsw", "syncd", "sdk health", "asic", "nvos"), 0.8, _OS,
         r"\bmlxsw_\w+ \S+: .{0,80}(?:fatal|[Tt]hermal|fail|error|too high)|SDK health event.{0,60}(?:fatal|error)|(?<!amdgpu )(?<!amdgpu: )\bASIC (?:reset|temperature too high|error)|NVOS: .{0,60}Not OK|system health: Not OK", physical=True),
    root(FaultClass.NETWORK_LINK, "switch.port-down", ("oper state set", "link not connected", "changed state to down", "is down (link", "from up to down", "if_xcvr_alarm", "no-transceiver", "link-flap error"), 0.78, _OS,
         r"%(?:LINK|LINEPROTO)-\d-UPDOWN: .*changed state to down|%ETHPORT-\d-(?:IF_XCVR_ALARM(?!.*[Cc]leared)|IF_HARDWARE: .*No-Transceiver)|link-flap error detected|oper(?:ational)? state set from up to down|\b[Ee]th(?:ernet)?[\d/]+ is down \((?:Link (?:not connected|failure)|SFP)|from up to down", physical=True),
    root(FaultClass.NETWORK_LINK, "link.light", ("rx power", "laser", "signal integrity", "recommendation", "no signal"), 0.8, _TOOL,
         r"(?:Rx|Tx|Laser \w+|rx|tx) power (?:high|low) (?:alarm|warning)(?: set\b|\s*:\s*On\b)|Bad [Ss]ignal [Ii]ntegrity|Recommendation\s*:? (?:Cable is unplugged|(?!No issue).{0,60}(?:fail|error|signal|integrity|fault|unplugged))", physical=True),
    root(FaultClass.NETWORK_SWITCH, "switch.pair-differs", ("mismatch between clag peers", "peer-link is down", "inconsistent", "not consistent"), 0.84, "MLAG and vPC: two switches that serve one bond and disagree",
         r"^(?!.*\bno(?:ne)?\b).*(?:mismatch between clag peers|\b(?:vpc|mlag)\b.{0,60}(?:peer-link is down\b(?!-)|(?:is|are) (?:inconsistent|not consistent)))"),
    root(FaultClass.NETWORK_SWITCH, "switch.pair-parted", ("mlag", "mc-lag", "clagd", "vsx", "vist", "vltd", "peer_link", "peer link"), 0.86, "MLAG, VSX, vIST and VLT: what joins two switches that serve one bond is gone",
         r"^(?!.*(?:\bup\b|-> active\b|\btimer\b|\bhold\b|down count|no longer|back to normal)).*(?:\b(?:MC-?LAG|VSX|VIST|VLT|clagd|MLAG)\b.{0,80}\b(?:down|inactive|failed|split)\b|PEER_LINK_DOWN|%MLAG-[0-4]-)", physical=True),
    root(FaultClass.NETWORK_ETH, "net.congestion-marks", "cnp", 0.56, "ethtool -S and RDMA hardware counters", r"\b(?:np_cnp_sent|rp_cnp_handled|np_ecn_marked\w*)\s*[:=]\s*[1-9]\d{4,}"),
)  # fmt: skip
