"""The GPU as its driver tells it: Xid and SXid lines, NVRM texts, nvidia-smi, NVLink.

Source of the classes: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors, read 2025-10-29) and
its Fabric Manager guide, as collected in the fault sheet of this project.
"""

# ruff: noqa: E501 - a pattern is read whole

from collections.abc import Iterator

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.evidence.sxid import SXIDS, Severity
from brctl.evidence.xid import XIDS
from brctl.model.evidence import Weight
from brctl.model.fault import FaultClass, Origin

_XID = "NVIDIA Xid catalogue, 2025-10-29"
_SMI = "nvidia-smi and NVML texts"
_NVRM = "NVIDIA kernel driver texts"
_GUIDE = "NVIDIA memory error management guide"
_BUS = r"(?:PCI:)?(?:(?P<gpu>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.\d)?)|[.x*:]{2,24})"


def _xid(codes: str) -> str:
    """The driver's own line, or a tool that repeats the number.

    DCGM says `Detected XID 79 for GPU 2`, gpud `XID 79(...) detected on`, the device plugin of
    Kubernetes `Xid=79 on Device=`.
    """
    driver = rf"(?<!S)Xid\b[^(\n]{{0,20}}\({_BUS}\)\s*:\s*(?P<code>{codes})\b"
    return rf"{driver}|\bXID (?P<code2>{codes})\b(?: for GPU (?P<gpu2>\d+)|\)|\()|\bXid=(?P<code3>{codes})\b on Device="


_XID_STRENGTH = {Weight.CONVICTS: 0.94, Weight.HINTS: 0.72, Weight.CONTEXT: 0.45}
"""How far one Xid line alone supports its class, by the weight the Xid table gives it."""


_TOLD = 0.87
"""What is left of it where the line is not the driver's nor of a tool whose words we know."""

_AFTER_AN_EXCEPTION = frozenset({46, 109, 119, 120})
"""Channels and the GSP that time out while the driver ends a process whose kernel failed (13, 31)."""

_EXCEPTIONS = f"xid.{FaultClass.USER_CODE}.{Weight.HINTS}"


def _xid_rows() -> tuple[Signature, ...]:
    groups: dict[tuple[FaultClass | None, Weight, bool], list[int]] = {}
    for code, xid in XIDS.items():
        key = (xid.fault, xid.weight, code in _AFTER_AN_EXCEPTION)
        groups.setdefault(key, []).append(code)
    return tuple(_xid_row(*key, codes) for key, codes in groups.items())


_XID_WORD = r"\bxid(?:[ _-](?:error|event|code|number|id))?\b\W{0,4}"
_NOT_SEEN = r"(?! *(?:errors?|times|ms|s)\b|\W{0,3}(?:0|none|not|no)\b|, ?\d)"
_NOT_SAID = (
    r"(?<!no )(?<!not )(?<!new )(?<!fake )(?<!for )(?<!on )(?<!if )(?<!of )(?<!ignoring )(?<!ignored )"
    r"(?<!skipping )(?<!previous )(?<!test )(?<!without )(?<!unless )(?<!when )(?<!oldest )"
)
_CARD = r"(?:GPU|device|[ABH][123]?00)"


def _told(codes: str) -> str:
    """A number that somebody's tool repeats in its own words, beside the GPU that it names.

    `GPU 3 Xid 79 detected`, `xid=94 on gpu 2`, `XID error 74 on H100 of n7`; no rule, list, count,
    drill or other program's `xid`, and no host that is called like a GPU.
    """
    before = (
        rf"\b{_CARD}[ #:=]{{1,2}}(?P<gpu>\d{{1,2}})\b:? (?:(?!no\b|not\b|ignor|skip)\w+ ){{0,3}}"
    )
    behind = rf"(?: (?!no\b|not\b)\w+){{0,3}} (?:on|for|at|from) (?:the )?{_CARD}\b(?:[ #:=]{{1,2}}(?P<gpu2>\d{{1,2}})\b)?"
    said = rf"{_NOT_SAID}{_XID_WORD}"
    return (
        rf"^(?!.*\b(?:inject|simulat|drill|dry.run)).*?(?:{said}(?P<code>{codes})\b{_NOT_SEEN}{behind}"
        rf"|{before}{said}(?P<code2>{codes})\b{_NOT_SEEN})"
    )


def _naming() -> Iterator[tuple[int, FaultClass, Weight]]:
    """The numbers that name a class by themselves."""
    for code, xid in XIDS.items():
        if xid.fault is not None and xid.weight is not Weight.CONTEXT:
            yield code, xid.fault, xid.weight


def _told_rows() -> tuple[Signature, ...]:
    groups: dict[tuple[FaultClass, Weight], list[int]] = {}
    for code, fault, weight in _naming():
        groups.setdefault((fault, weight), []).append(code)
    return tuple(
        root(fault, f"xid.told.{fault}.{weight}", "xid", _TOLD * _XID_STRENGTH[weight], _XID,
             _told("|".join(map(str, codes))))
        for (fault, weight), codes in groups.items()
    )  # fmt: skip


def _previous_row(fault: FaultClass, codes: list[int]) -> Signature:
    """An Xid 45 that names the Xid before it: that one decides."""
    pattern = rf"caused by previous Xid (?P<code>{'|'.join(map(str, codes))})\b"
    return root(fault, f"xid.previous.{fault}", "previous xid", 0.86, _XID, pattern, physical=True)


def _previous_rows() -> tuple[Signature, ...]:
    groups: dict[FaultClass, list[int]] = {}
    for code, fault, _ in _naming():
        groups.setdefault(fault, []).append(code)
    return tuple(_previous_row(fault, codes) for fault, codes in groups.items())


def _xid_row(
    fault: FaultClass | None, weight: Weight, may_follow: bool, codes: list[int]
) -> Signature:
    pattern = _xid("|".join(map(str, codes)))
    if fault is None:
        return aside(Part.CONTEXT, "xid.follows-another", "xid", _XID, pattern)
    name = f"xid.{fault}.{weight}{'.timeout' if may_follow else ''}"
    follows = (_EXCEPTIONS,) if may_follow else ()
    strength = _XID_STRENGTH[weight]
    return root(fault, name, "xid", strength, _XID, pattern, physical=True, follows=follows)


_XID_ROWS = (
    *_xid_rows(),
    *_previous_rows(),
    *_told_rows(),
    root(FaultClass.DRIVER_FIRMWARE, "xid.unlisted", "xid", 0.5, _XID,
         _xid(rf"(?!(?:{'|'.join(map(str, XIDS))})\b)\d+"), physical=True),
)  # fmt: skip

_SXID = r"SXid\b[^(\n]{0,20}\(" + _BUS + r"\)\s*:\s*"


def _codes(severity: Severity) -> str:
    return "|".join(str(code) for code, (known, _) in SXIDS.items() if known is severity)


_DRIVER = (
    root(FaultClass.DRIVER_FIRMWARE, "xid.recovery-action", "recovery action changed", 0.55, _XID,
         r"recovery action changed .{0,60}to 0x(?!0\b)\d", physical=True),
    aside(Part.BENIGN, "sxid.harmless", "sxid", "Imbue health checks",
          r"SXid\b.{0,80}(?:Non-fatal|Severity 0|\bData \{)"),
    root(FaultClass.NVLINK, "sxid.fatal", "sxid", 0.85, "Fabric Manager guide",
         _SXID + rf"(?:(?P<code>{_codes(Severity.ALWAYS_FATAL)})\b|(?P<code2>\d+)\s*,\s*(?:Fatal|.*LTSSM Fault))", physical=True),
    root(FaultClass.NVLINK, "sxid.other", "sxid", 0.6, "Fabric Manager guide",
         _SXID + rf"(?!(?:{_codes(Severity.NON_FATAL)})\b)(?P<code>\d+)\s*,(?!\s*(?:Non-fatal|Data|Severity|Correctable|.{{0,80}}Disengaged))", physical=True),
    root(FaultClass.GPU_LOST, "nvrm.off-bus", ("fallen off the bus", "fell off the bus"), 0.95, _NVRM,
         rf"(?:{_BUS}.{{0,160}})?f[ae]ll(?:en)? off the bus", physical=True),
    root(FaultClass.GPU_LOST, "nvrm.lost", ("gpu is lost", "gpu_is_lost", "gpu has been lost"), 0.93, _SMI,
         rf"(?:{_BUS}.{{0,160}})?GPU(?:_| )(?:is|has been)(?:_| )lost", physical=True),
    root(FaultClass.GPU_LOST, "smi.no-handle", "unable to determine the device handle", 0.9, _SMI,
         r"device handle for (?:GPU)?\s*(?P<gpu>[0-9a-f:.]+)?", physical=True),
    root(FaultClass.GPU_LOST, "lspci.rev-ff", "(rev ff)", 0.88, "lspci(8): all bits read as one",
         r"\b(?P<gpu>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) .{0,160}(?:NVIDIA|3D controller|VGA).{0,160}\(rev ff\)", physical=True),
    root(FaultClass.GPU_LOST, "smi.err-column", ("err!", "unknown error"), 0.7, _SMI,
         r"\|\s*ERR!|^\s*(?:Unknown Error|GPU .{0,40}Unknown Error)\s*$", physical=True),
    root(FaultClass.GPU_LOST, "health.gpu-count",
         ("gpus found", "gpu count", "gpus detected", "missing gpu", "expected 8 gpu", "check_gpu_count", "gpus", "expected "), 0.72,
         "health checks: device count below expectation",
         r"(?:GPU count (?:mismatch|check.*fail)|expected \d+ GPUs?.*(?:found|got|only)|missing GPU|"
         r"(?:only|found) \d+ (?:of \d+ )?GPUs?.*expected|(?<!NICs for device \d\. )[Ee]xpected (?P<want>\d+) (?:GPUs? )?(?:and|but) (?:found|got|have) (?!(?P=want)\b)\d+(?: GPUs?)?|(?<!\d)[0-7] GPUs (?:found|detected).*expect)"),
    root(FaultClass.DRIVER_FIRMWARE, "nvrm.rminit",
         ("rminitadapter", "rm_init_adapter", "cannot initialize gsp", "wpr2 already up",
          "kgspbootgsprm", "gsp rpc", "rpc response from gpu", "_issuerpc", "rpcrecvpoll", "rpcsendmessage", "kgsphealthcheck", "gsp crash",
          "rminit failed", "gsp-rm", "rpc event history", "rpc history"), 0.86, _NVRM,
         rf"(?:{_BUS}.{{0,160}})?RmInitAdapter(?: failed|: Cannot)|rm_init_adapter failed|Cannot initialize GSP|WPR2 already up|"
         r"kgspBootGspRm.*(?:fail|unexpected|cannot)|RPC response from GPU\d* GSP|GSP RPC.*(?:timeout|fail)|"
         r"kgspHealthCheck|RPC (?:event )?history \(CPU|_issueRpc\w*: |rpc(?:RecvPoll|SendMessage) (?:timed ?out|failed)|GSP(?:-RM)? (?:has )?(?:crash|fail|halt|timeout)", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "nvrm.inforom", "inforom", 0.84, _SMI,
         r"infoROM is corrupted(?: at gpu (?P<gpu>[0-9a-f:.]+))?|infoROM.*(?:invalid|checksum)",
         physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "cuda.fabric-not-ready",
         ("system not yet initialized", "cudaerrorsystemnotready", "fabric manager", "fabricmanager",
          "nvidia-fabricmanager"), 0.85, "CUDA error 802; Fabric Manager guide",
         r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|"
         r"fabric ?manager.{0,60}(?:fail|error|not running|inactive|mismatch|abort|exited|timed? ?out)|"
         r"(?:fail|error|mismatch|not running).{0,60}fabric ?manager(?! requested link)"),
    root(FaultClass.DRIVER_FIRMWARE, "smi.driver-unreachable",
         ("couldn't communicate with the nvidia driver", "could not communicate with the nvidia driver",
          "driver not loaded"), 0.75, _SMI,
         r"communicate with the NVIDIA driver|NVML: Driver Not Loaded"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "nvml.unknown-error", "failed to initialize nvml: unknown error", 0.75,
         _SMI + ": a container whose device nodes were taken away; a lost GPU has lines of its own",
         r"Failed to initialize NVML: Unknown Error", origin=Origin.INFRA),
    root(FaultClass.GPU_LOST, "nvrm.gpu-is-lost", "0x0000000f", 0.88, _NVRM + ": NV_ERR_GPU_IS_LOST",
         r"(?:NVRM|nvidia-modeset|nvidia-uvm)\b.{0,200}(?:status[ =]{0,2}|channel state: \S{0,24}:)0x0000000f\b", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "gsp.rpc-timeout", "rpc from gsp", 0.84, _NVRM, r"Timeout (?:while )?waiting for RPC from GSP", physical=True),
    root(FaultClass.ENVIRONMENT_MISMATCH, "nvrm.api-mismatch",
         ("driver/library version mismatch", "nvml_error_lib_rm_version_mismatch"), 0.93,
         _NVRM, r"Driver/library version mismatch|LIB_RM_VERSION_MISMATCH",
         origin=Origin.INFRA),
    root(FaultClass.DRIVER_FIRMWARE, "nvrm.assert",
         ("nvrm: nvassertokfailed", "nvrm: nvassertfailed", "nvrm: nvcheckokfailed"), 0.4, _NVRM,
         physical=True),
    root(FaultClass.NVLINK, "nvrm.knvlink", ("nvlink",), 0.82, _NVRM,
         r"NVRM:(?! Xid).*k?nvlink\w*.{0,80}(?:fail|error|timed? ?out|degraded)|"
         r"^(?!.*\bXid\b).*NVLink.{0,60}(?:link (?:is )?down|training (?:failed|error)|fatal|"
         r"(?:crc|replay|recovery|ecc)\D{0,20}(?:error|count)\w*\D{0,12}[1-9])|"
         r"NVLinks? .{0,40}(?:inactive|disabled|is (?:currently )?down|degraded)", physical=True),
    root(FaultClass.NVLINK, "smi.nvlink-inactive", "<inactive>", 0.82, _SMI,
         r"Link (?P<link>\d+):\s*<inactive>", physical=True),
    root(FaultClass.NVLINK, "smi.nvlink-counters",
         ("replay errors:", "recovery errors:", "crc errors:", "crc error"), 0.7, _SMI,
         r"Link \d+:\s*(?:Replay|Recovery|CRC)(?: FLIT| Data)? Errors?:\s*[1-9]", physical=True),
    root(FaultClass.NVLINK, "cuda.contained", ("cuda_error_contained", "cudaerrorcontained", "gpu memory over nvlink"), 0.86, "CUDA error 721",
         r"CUDA_ERROR_CONTAINED|cudaErrorContained|Invalid access of peer GPU memory over nvlink", physical=True),
    root(FaultClass.NVLINK, "cuda.nvlink", ("uncorrectable nvlink error", "cudaerrornvlinkuncorrectable"),
         0.93, "CUDA error 220", physical=True),
    root(FaultClass.PCIE, "nvrm.bar", ("bar1 is 0m", "pci i/o region assigned"), 0.82, _NVRM + ": the firmware left a card's memory windows out",
         sets="no-window", physical=True),
    root(FaultClass.PCIE, "nvrm.no-window", ("rminitadapter", "rm_init_adapter", "nvidia: probe"), 0.87,
         _NVRM + ": the driver cannot start a card whose memory windows the firmware left out",
         r"RmInitAdapter(?: failed|: Cannot)|rm_init_adapter failed|\bnvidia: probe .{0,60}failed with error", when=(("no-window", "*"),), physical=True),
    root(FaultClass.THERMAL_POWER, "nvrm.power-cable",
         ("power cables", "auxiliary power", "gpu power is not", "requires external power"), 0.85, _NVRM,
         physical=True),
    root(FaultClass.PCIE, "smi.pcie-degraded", ("pcie link", "pcie bandwidth", "pcie gen", "pcie speed", "link width"), 0.65, _SMI,
         r"PCIe.{0,40}(?:degraded|downgraded|below expected)|link width.{0,40}(?:x[1248]\b.{0,30}expected|"
         r"degraded|downgraded)", physical=True),
)  # fmt: skip

_MEMORY = (
    aside(Part.CONTEXT, "smi.gpu", ("gpu 0", "gpu 1", "gpu 2", "gpu 3", "gpu 4", "gpu 5", "gpu 6", "gpu 7"), _SMI,
          r"^\s*GPU (?P<value>[0-9a-fA-F]{8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d|\d+:)", sets="gpu"),
    aside(Part.CONTEXT, "smi.volatile", "volatile", _SMI, r"^\s*(?P<value>Volatile)\s*$", sets="ecc"),
    aside(Part.CONTEXT, "smi.aggregate", "aggregate", _SMI, r"^\s*(?P<value>Aggregate)\s*$", sets="ecc"),
    root(FaultClass.GPU_MEMORY_ECC, "smi.volatile-uncorrectable", ("uncorrectable", "double bit"), 0.9,
         _GUIDE, r"^\s*(?:(?:SRAM|DRAM)? ?Uncorrectable(?: Parity| SEC-DED)?|Double Bit ECC Errors?)\s*:\s*[1-9]",
         when=(("ecc", "volatile"),), physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.table-uncorrectable", (" off |", " on |"), 0.85, _SMI,
         r"\|\s*(?P<gpu>[0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+(?:On|Off)\s*\|\s+[1-9]\d*\s*\|", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.aggregate-uncorrectable", "uncorrectable", 0.6, _GUIDE,
         r"^\s*(?:SRAM|DRAM) Uncorrectable(?: Parity| SEC-DED)?\s*:\s*[1-9]",
         when=(("ecc", "aggregate"),), physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.pending", "pending", 0.88, _GUIDE,
         r"^\s*(?:Pending(?: Page Blacklist)?|Remapping Failure Occurred)\s*:\s*Yes", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.remap-failed",
         ("remapping failure occurred", "row remap fail", "remapped rows failed"), 0.93, _GUIDE,
         r"Remapping Failure Occurred\s*:\s*Yes|row remap\w* (?:has )?fail|Remapped rows failed\D+[1-9]", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.sram-threshold", "sram threshold exceeded", 0.93, _GUIDE,
         r"SRAM Threshold Exceeded\s*:\s*Yes", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "ecc.uncorrectable",
         ("uncorrectable ecc", "uncorrectable memory", "ecc error", "ecc uncorrectable", "double bit ecc",
          "double-bit ecc", "cudaerroreccuncorrectable", "cuda_error_ecc_uncorrectable", "dbe detected", "dbe error",
          "uncorrected ecc"), 0.92, "CUDA error 214; DCGM texts",
         r"^(?!.*(?:\bSXid\b|\bDIMM|\bof CPU \d|\bDDR\d|\bUEFI\d{4}|\w_edac\b|\bEDAC\b|%[A-Z]\w*-\d-[A-Z]|Violation conditions|\bcritical 0\b)).*?"
         r"(?:GPU (?P<gpu>\d{1,3})\b.{0,80}?)?(?:uncorrect(?:able|ed) (?:ECC|memory)|ECC (?:error|uncorrectable)\w* (?:en|det)|"
         r"cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE|double[- ]bit ECC|DBE (?:error|detected))"
         r"(?!\s*(?:errors?|count)?\s*[:=]\s*(?:0\b|N/A))", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "ecc.remap-words",
         ("row remap", "row-remap", "remappings are pending", "page retirement", "retired pages",
          "pages pending", "remapped rows"), 0.85, "DCGM texts",
         r"(?:GPU (?P<gpu>\d{1,3})\b.{0,80}?)?(?:row[- ]remap\w*.{0,40}(?:pending|fail|error)|remappings are pending|"
         r"(?:page retirement|retired pages?).{0,40}(?:pending|limit|fail)|pages pending retirement)"
         r"(?!\s*:\s*(?:No|0|N/A))", physical=True),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_XID_ROWS, *_DRIVER, *_MEMORY)
