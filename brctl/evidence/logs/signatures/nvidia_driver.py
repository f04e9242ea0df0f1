"""What the NVIDIA driver and the daemons beside it say without a number.

Source: src/nvidia and kernel-open of NVIDIA/open-gpu-kernel-modules 515 to 580 (object and function names of
the resource manager), nvidia-persistenced, nvidia-smi, modprobe; /var/log/fabricmanager.log.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass, Origin

_NVRM = "NVIDIA kernel driver texts"
_SMI = "nvidia-smi texts"
_FM = "Fabric Manager log"
_D = FaultClass.DRIVER_FIRMWARE

_KERNEL = (
    root(FaultClass.GPU_LOST, "nvrm.gone", ("is lost", "gpulost", "not responding to commands", "surprise removed", "read back 0xffffffff"), 0.92, _NVRM,
         r"NVRM:.{0,120}(?:\bGPU\b.{0,60}\bis lost\b|osHandleGpuLost|not responding to commands|surprise[- ]removed|read back 0xffffffff)", physical=True),
    aside(Part.BENIGN, "nvrm.refused", ("not_supported", "not supported"), _NVRM + ": a request that this card or release does not have (NV_ERR_NOT_SUPPORTED, 0x56)",
          r"NVRM: (?!.{0,300}(?:\bXid\b|[Rr]m_?[Ii]nit_?[Aa]dapter|[Uu]ncorrect|training failed|is lost)).{0,300}(?:\[NV_ERR_NOT_SUPPORTED\]|=0x56 \(NOT_SUPPORTED\))"),
    root(_D, "nvrm.boot", ("gfw boot", "gfwboot", "gspfmcboot", "gsp-fmc", "bad register read", "vbios", "rom signature", "kfsp", "fsp ", "kgsp", "gsp heartbeat", "scrubber", "wpr", "initgpu", "bootloader"), 0.84, _NVRM,
         r"NVRM:.{0,160}(?:(?:GFW|GSP|FSP|SEC2|PMU|FMC|GspRm|VBIOS|InfoROM|scrubber|falcon|booter|kgsp\w*|kfsp\w*)\w*.{0,80}(?:fail|timed? ?out|timeout|not respond|stopped|halt|crash|invalid|did not|cannot|unable|error)|[Ff]ailed to copy vbios|did not find valid ROM|bad register read|failed to boot)", physical=True),
    root(_D, "nvrm.any", ("nvrm:",), 0.56, _NVRM + ": any object of the driver that failed",
         r"NVRM: (?!Xid|loading|.{0,80}(?:disabled by|Enabled|crash dump has been created)).{0,200}\b(?:failed|failure|timed ?out|timeout|cannot|unable to|invalid|not respond(?:ing)?|halted|crash(?:ed)?|Error!|fatal|corrupt\w*)\b(?!.{0,6}: ?0\b)", part=Part.GENERIC),
    root(FaultClass.ENVIRONMENT_MISMATCH, "nvrm.unsupported", ("driver release", "module_layout", "not supported by the nvidia", "unknown symbol", "disagrees about version"), 0.8, _NVRM + " and the kernel's module loader",
         r"not supported by the NVIDIA .{0,24}driver|nvidia\w*: (?:disagrees about version of symbol|Unknown symbol)|nvidia\w*: .{0,40}version magic", origin=Origin.INFRA, physical=True),
    root(_D, "nvrm.other-driver", ("obtained ownership", "nouveau, rivafb"), 0.82, _NVRM, r"obtained ownership of the NVIDIA device|nouveau, rivafb", physical=True),
    root(_D, "nvidia.daemon", ("nvidia-persistenced", "nvidia-powerd", "nvidia-peermem", "nvidia_peermem", "nvidia-gridd"), 0.72, "nvidia-persistenced and its like",
         r"nvidia[-_](?:persistenced|powerd|gridd|peermem)\b(?!.{0,40}free_callback).{0,80}(?:\bfailed (?:to|-)|- failed|(?<!peermem )not (?:found|loaded|supported)|unable to|error\b|could not)"),
    root(FaultClass.NVLINK, "nvidia.nvlink", ("nvidia-nvlink", "knvlink", "nvlink:"), 0.84, _NVRM,
         r"nvidia-nvlink:.{0,80}(?:unrecoverable|fail|fatal|error)|knvlink\w+.{0,100}(?:fail|error|need to shutdown|unilaterally|degraded|not (?:active|trained))|NVRM:.{0,60}NVLink.{0,60}(?:training failed|link (?:is )?down|fail|fatal|degraded|unrecoverable)", physical=True),
)  # fmt: skip

_SMI_ROWS = (
    root(_D, "smi.reset-required", ("requires reset", "requires a reset", "gpu recovery action", "reset required"), 0.66, _SMI,
         r"GPU (?P<gpu>[0-9a-f:.]{7,20})?:? ?requires (?:a )?reset|GPU Recovery Action\s*:\s*(?!None\b|N/A)\w", physical=True),
    root(_D, "smi.no-devices", "no devices were found", 0.66, _SMI + ": cards are there, the driver could start none", r"^\s*No devices were found\.?\s*$"),
    root(_D, "smi.init", ("failed to initialize nvml",), 0.72, _SMI, r"Failed to initialize NVML: (?:GPU access blocked|Unknown Error|Driver Not|GPU is lost|RM has detected|Timeout)"),
    root(FaultClass.GPU_LOST, "smi.no-identity", ("gpu-????", "??.??.??"), 0.7, "/proc/driver/nvidia: a card that the driver could not read", r"GPU-\?{8}|BIOS:\s*\?\?\.\?\?", physical=True),
    root(FaultClass.THERMAL_POWER, "smi.query-throttle", ("slowdown", "power_brake"), 0.86, "nvidia-smi --query-gpu and NVML names",
         r"(?:hw_(?:thermal_|power_brake_)?slowdown|sw_thermal_slowdown|HW_THERMAL_SLOWDOWN|HW_SLOWDOWN|HW_POWER_BRAKE\w*)\W{0,4}\s*(?:[:=,]\s*)?\b(?:Active|1|true)\b", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "smi.query-memory", ("retired_pages", "remapped_rows", "row_remap", "ecc.errors"), 0.87, "nvidia-smi --query-gpu and DCGM field names",
         r"(?:retired_pages\.pending|remapped_rows\.(?:pending|failure)|row_remap_(?:pending|failure))\W{0,4}\s*(?:[:=,]\s*)?(?:Yes|1)\b|ecc\.errors\.uncorrected\.volatile\.\w+\W{1,4}[1-9]", physical=True),
    aside(Part.CONTEXT, "smi.link-width", ("max   ", "max\t", "max :"), _SMI, r"^\s*Max\s*:\s*(?P<value>16)x\s*$", sets="smi-width"),
    root(FaultClass.PCIE, "smi.width-below-max", "current", 0.78, _SMI, r"^\s*Current\s*:\s*[1248]x\s*$", when=(("smi-width", "16"),), physical=True),
    aside(Part.CONTEXT, "smi.fabric", "fabric", _SMI, r"^\s*(?P<value>Fabric)\s*$", sets="smi-section"),
    root(_D, "smi.fabric-state", ("state   ", "state :", "status   ", "status :"), 0.7, _SMI,
         r"^\s{6,}State\s*:\s*(?:In Progress|Not Started)|^\s{6,}Status\s*:\s*(?!Success|N/A|0\b)\w.{0,40}", when=(("smi-section", "fabric"),), physical=True),
)  # fmt: skip

_FABRIC_MANAGER = (
    root(FaultClass.NVLINK, "fabric-manager.links", ("nvlink", "nvswitches don't match", "degrading gpu"), 0.87, _FM,
         r"NVLink access is not available|not all NVLinks are trained|[Ff]ailed to (?:detect|train|configure|initialize|enable) .{0,30}NVLink|NVLink.{0,40}(?:training|connection).{0,20}fail|number of NVSwitches don't match|degrading (?:the )?(?:GPU|NVSwitch)", physical=True),
    root(FaultClass.NVLINK, "fabric-manager.port", "detected fatal error on port", 0.88, _FM, r"detected fatal error on port \d+ of switch", physical=True),
    root(FaultClass.NVLINK, "fabric-manager.non-fatal", "non-fatal error", 0.5, _FM, r"detected NVSwitch non-fatal error (?P<code>\d+)", physical=True),
    root(_D, "fabric-manager.multicast", ("multicast team", "gpu handle"), 0.78, _FM, r"failed to find the GPU handle|multicast team.{0,60}(?:fail|error|not found)"),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_KERNEL, *_SMI_ROWS, *_FABRIC_MANAGER)
