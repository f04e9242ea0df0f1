"""Answer questions about GPUs with the real nvidia-ml-py binding, one JSON line each."""

import json
import sys
import time
from collections.abc import Callable
from ctypes import byref

import pynvml as nvml

held: dict[int, object] = {}


def handle(index: int) -> object:
    return held.setdefault(index, nvml.nvmlDeviceGetHandleByIndex(index))


def ecc(index: int) -> list[int]:
    gpu = nvml.nvmlDeviceGetHandleByIndex(index)
    return [nvml.nvmlDeviceGetTotalEccErrors(gpu, kind, 0) for kind in (0, 1)]


def sram(index: int) -> list[int]:
    status = nvml.c_nvmlEccSramErrorStatus_v1_t()
    nvml.nvmlDeviceGetSramEccErrorStatus(handle(index), byref(status))
    return [status.volatileUncParity, status.aggregateUncParity]


def fabric(index: int) -> list[int]:
    info = nvml.c_nvmlGpuFabricInfo_v3_t()
    nvml.nvmlDeviceGetGpuFabricInfoV(handle(index), byref(info))
    return [info.state, info.status]


def histogram(index: int) -> list[int]:
    values = nvml.nvmlDeviceGetRowRemapperHistogram(handle(index))
    return [values.max, values.none]


def fields(index: int, wanted: list[int]) -> list[list[int]]:
    values = nvml.nvmlDeviceGetFieldValues(handle(index), wanted)
    return [[value.nvmlReturn, value.value.ullVal] for value in values]


def timed_temperature(index: int) -> list[float]:
    began = time.monotonic()
    value = temperature(index)
    return [time.monotonic() - began, value]


def temperature(index: int) -> int:
    return int(nvml.nvmlDeviceGetTemperature(nvml.nvmlDeviceGetHandleByIndex(index), 0))


FUNCTIONS: dict[str, Callable[..., object]] = {
    "init": nvml.nvmlInit,
    "count": nvml.nvmlDeviceGetCount,
    "uuid": lambda index: nvml.nvmlDeviceGetUUID(handle(index)),
    "pci": lambda index: nvml.nvmlDeviceGetPciInfo(handle(index)).busId,
    "temperature": temperature,
    "held_temperature": lambda index: nvml.nvmlDeviceGetTemperature(handle(index), 0),
    "timed_temperature": timed_temperature,
    "ecc": ecc,
    "remapped": lambda index: nvml.nvmlDeviceGetRemappedRows(handle(index)),
    "retired": lambda index: nvml.nvmlDeviceGetRetiredPages(handle(index), 0),
    "links": lambda index: [nvml.nvmlDeviceGetNvLinkState(handle(index), i) for i in range(18)],
    "link_errors": lambda index, link: nvml.nvmlDeviceGetNvLinkErrorCounter(handle(index), link, 0),
    "sram": sram,
    "fabric": fabric,
    "histogram": histogram,
    "fields": fields,
}


def answer(function: str, *arguments: object) -> object:
    try:
        return FUNCTIONS[function](*arguments)
    except nvml.NVMLError as error:
        return f"NVMLError {error.value}"


def main() -> None:
    try:
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            handle(index)
    except nvml.NVMLError:
        held.clear()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(*json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
