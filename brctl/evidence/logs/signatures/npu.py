"""Ascend NPUs and Gaudi accelerators: the numbered errors of their runtimes and collectives, as data.

Source: CANN's error codes (EI and EJ of HCCL and HCCP, EL of the runtime, EZ and E4 of operators),
its runtime's aclError numbers, torch_npu texts, and synStatus of Habana's SynapseAI.
"""

# ruff: noqa: E501 - a table is read by its columns

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_CANN = "CANN error codes"
_ACL = "CANN runtime, aclError numbers and torch_npu texts"
_SYN = "SynapseAI synStatus"
_GAUDI = "habanalabs driver texts"
_NPU_ERROR = r"\berror code:? ?(?:is )?"


def _coded(codes: str) -> str:
    """A code at the head of a message, or in brackets behind its name."""
    return rf"\b(?:{codes})(?:: |\): )"


_COLLECTIVES = (
    root(F.NCCL_CONFIG, "hccl.configuration", ("ei0001", "ei0004", "ranktable"), 0.84, _CANN + ": environment variable, rank table", _coded("EI000[14]")),
    root(F.HANG_MISMATCH, "hccl.mismatch", "ei0005", 0.86, _CANN + ": arguments differ between ranks", _coded("EI0005"), origin=Origin.USER),
    root(F.USER_CODE, "hccl.argument", "ei0003", 0.72, _CANN, _coded("EI0003")),
    root(F.ENVIRONMENT_MISMATCH, "hccl.versions", "ei0008", 0.88, _CANN, _coded("EI0008")),
    root(F.GPU_OOM, "hccl.memory", "ei0011", 0.78, _CANN, _coded("EI0011")),
    root(F.NETWORK_IB, "hccl.roce", "ei0013", 0.78, _CANN + ": a completion with an error", _coded("EI0013"), origin=Origin.UNKNOWN),
    root(F.NCCL_CONFIG, "hccl.join-timeout", "ei0015", 0.62, _CANN + ": not all ranks of the job registered", _coded("EI0015")),
    root(F.USER_CODE, "hccl.port-taken", ("ej0001", "ej0003"), 0.74, _CANN + ": an earlier process still holds the device or its port", _coded("EJ000[13]")),
    root(F.NETWORK_LINK, "hccl.port-down", "ej0002", 0.82, _CANN, _coded("EJ0002"), physical=True),
    aside(Part.VICTIM, "hccl.wait", ("ei0002", "ei0006", "507901"), _CANN + ": the reporter waited for another rank", _coded("EI0002|EI0006") + rf"|{_NPU_ERROR}507901\b"),
)  # fmt: skip

_RUNTIME = (
    root(F.GPU_OOM, "npu.memory", ("el0004", "207001", "207018", "npu out of memory", "hpu out of memory", "xpu out of memory", "mps backend out of memory"), 0.9, _ACL,
         _coded("EL0004") + rf"|{_NPU_ERROR}2070(?:01|18)\b|\b(?:NPU|HPU|XPU|MPS backend) out of memory"),
    root(F.GPU_MEMORY_ECC, "npu.memory-error", ("507053", "507054", "507055", "multi bit ecc", "uce error"), 0.9, _ACL,
         rf"{_NPU_ERROR}50705[345]\b|HBM MULTI BIT ECC ERROR|NPU function error: UCE ERROR", physical=True),
    root(F.NVLINK, "npu.hccs", ("507056", "hccs link error"), 0.86, _ACL, rf"{_NPU_ERROR}507056\b|HCCS LINK ERROR", physical=True),
    root(F.GPU_LOST, "npu.heartbeat", ("507010", "lost heartbeat"), 0.8, _ACL, rf"{_NPU_ERROR}507010\b|(?:task scheduler|\bDevice ?\[?\d+\]?|\bNPU ?\[?\d+\]?) lost heartbeat", physical=True),
    root(F.DRIVER_FIRMWARE, "npu.driver", ("507033", "507899", "507013"), 0.76, _ACL + ": device set-up, driver, system DMA", rf"{_NPU_ERROR}507(?:013|033|899)\b", physical=True),
    root(F.USER_CODE, "npu.argument", ("el0003", "ez1001", "ez1002", "ez1003", "ez1004", "ez1005", "107000", "107003"), 0.74, _CANN,
         _coded(r"EL0003|EZ100[1-5]") + rf"|{_NPU_ERROR}10700[03]\b"),
    root(F.USER_CODE, "npu.operator", ("ez3002", "ez3003", "e40021"), 0.66, _CANN + ": no kernel for an operator, or its compilation failed", _coded("EZ300[23]|E40021")),
)  # fmt: skip

_SYNAPSE = (
    root(F.GPU_OOM, "synapse.memory", ("synoutofdevicememory", "synfailedtoallocatedevicememory", "synstatus"), 0.86, _SYN,
         r"\bsyn(?:OutOfDeviceMemory|FailedToAllocateDeviceMemory)\b|synStatus[ =](?:4|14) \["),
    root(F.CPU_OOM, "synapse.host-memory", ("synoutofhostmemory", "synstatus"), 0.8, _SYN, r"\bsynOutOfHostMemory\b|synStatus[ =]3 \["),
    root(F.GPU_LOST, "synapse.no-device", ("synnodevicefound", "synfailednotenoughdevicesfound", "synstatus"), 0.72, _SYN,
         r"\bsyn(?:NoDeviceFound|FailedNotEnoughDevicesFound)\b|synStatus[ =](?:8|16) \[", origin=Origin.UNKNOWN),
    root(F.GPU_LOST, "habana.dead", "habanalabs", 0.88, _GAUDI, r"habanalabs\b.{0,80}(?:PCI link is (?:broken|inaccessible)|is NOT usable)", physical=True),
    root(F.DRIVER_FIRMWARE, "habana.firmware", "habanalabs", 0.78, _GAUDI + ": its own processor stopped", r"habanalabs\b.{0,80}(?:heartbeat failed|device CPU is (?:not responding|stuck))", physical=True),
    root(F.DRIVER_FIRMWARE, "synapse.reset", ("syndevicereset", "synstatus"), 0.6, _SYN + ": that it was reset, not why", r"\bsynDeviceReset\b|synStatus[ =]17 \["),
    root(F.USER_CODE, "synapse.use", ("synapse", "syninvalid", "syndevicealreadyacquired", "synstatus", "synunsupported", "synnameisalreadyused"), 0.72, _SYN + ": a wrong argument, or a device that another process of the user holds",
         r"\bsyn(?:InvalidArgument|InvalidTensorDimensions|DeviceAlreadyAcquired|Unsupported|NameIsAlreadyUsed|DeviceTypeMismatch)\b|synStatus[ =](?:1|9|18|20|21|25) \[(?!Fail\b)"),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_COLLECTIVES, *_RUNTIME, *_SYNAPSE)
