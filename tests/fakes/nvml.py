"""A stand-in for the pynvml module: eight healthy H100-like GPUs, each value changeable."""

import ctypes
from collections.abc import Iterator, Mapping
from typing import NamedTuple

Answer = object


class NVMLError(Exception):
    """As pynvml raises it: the number in `value`."""

    def __init__(self, value: int) -> None:
        super().__init__({3: "Not Supported", 15: "GPU is lost"}.get(value, f"error {value}"))
        self.value = value


class _PciInfo(NamedTuple):
    busId: bytes


class _Utilisation(NamedTuple):
    gpu: int


class _Histogram(NamedTuple):
    max: int
    none: int


_HEALTHY: Mapping[str, Answer] = {
    "EccMode": (1, 1),
    "TotalEccErrors": 0,
    "MemoryErrorCounter": 0,
    "RemappedRows": (0, 0, 0, 0),
    "RowRemapperHistogram": _Histogram(640, 0),
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkWidth": 16,
    "CurrPcieLinkGeneration": 5,
    "MaxPcieLinkGeneration": 5,
    "PcieReplayCounter": 0,
    "UtilizationRates": _Utilisation(97),
    "NvLinkState": 1,
    "NvLinkErrorCounter": 0,
    "CurrentClocksEventReasons": 0x4,
    "ClockInfo": 1755,
    "MaxClockInfo": 1980,
    "Temperature": 61,
    "TemperatureThreshold": 87,
    "PowerUsage": 412000,
    "EnforcedPowerLimit": 700000,
    "PowerManagementDefaultLimit": 700000,
    "Name": b"NVIDIA H100 80GB HBM3",
    "Serial": b"1652923004411",
    "SramEccErrorStatus": 0,
}


class FakeNvml:
    """Answers like pynvml.

    Attributes:
        changes: `(gpu index or None for all, query without nvmlDeviceGet) -> answer`; an NVMLError
            is raised instead of returned.
    """

    NVMLError = NVMLError
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_AGGREGATE_ECC = 1
    NVML_MEMORY_LOCATION_DRAM = 2
    NVML_MEMORY_LOCATION_SRAM = 7
    NVML_NVLINK_MAX_LINKS = 18
    NVML_NVLINK_ERROR_DL_REPLAY = 0
    NVML_NVLINK_ERROR_DL_RECOVERY = 1
    NVML_NVLINK_ERROR_DL_CRC_FLIT = 2
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1

    def __init__(
        self, gpus: int = 8, changes: Mapping[tuple[int | None, str], Answer] | None = None
    ) -> None:
        self.gpus = gpus
        self.changes = dict(changes or {})
        self.open = False

    def nvmlInit(self) -> None:
        self.open = True

    def nvmlShutdown(self) -> None:
        self.open = False

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"550.54.15"

    def nvmlDeviceGetCount(self) -> int:
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        lost = self.changes.get((index, "*"))
        if isinstance(lost, NVMLError):
            raise lost
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return b"GPU-%08d-0000-0000-0000-000000000000" % handle

    def nvmlDeviceGetPciInfo(self, handle: int) -> _PciInfo:
        return _PciInfo(b"00000000:%02X:00.0" % (0x10 + handle))

    class c_nvmlEccSramErrorStatus_v1_t(ctypes.Structure):
        """What the driver fills in."""

        _fields_ = (("bThresholdExceeded", ctypes.c_uint),)

    def __getattr__(self, name: str) -> object:
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)
        return lambda handle, *arguments: self._answer(
            name.removeprefix("nvmlDeviceGet"), handle, arguments
        )

    def _answer(self, query: str, handle: int, arguments: tuple[object, ...]) -> Answer:
        if query not in _HEALTHY:
            raise AttributeError(f"the fake does not know nvmlDeviceGet{query}")
        for key in self._keys(query, handle, arguments):
            if key in self.changes:
                answer = self.changes[key]
                if isinstance(answer, NVMLError):
                    raise answer
                return answer
        return _HEALTHY[query]

    def _keys(
        self, query: str, handle: int, arguments: tuple[object, ...]
    ) -> Iterator[tuple[int | None, str]]:
        detailed = f"{query}({','.join(str(a) for a in arguments)})"
        for name in (detailed, query):
            yield handle, name
            yield None, name
