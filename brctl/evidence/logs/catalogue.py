"""Every shipped signature, and the anchors the streaming engine looks for."""

from collections.abc import Iterable

from brctl.evidence.logs import witnesses
from brctl.evidence.logs.signature import Part, Signature
from brctl.evidence.logs.signatures import (
    accelerator,
    bmc,
    cuda,
    cuda_errors,
    dcgm,
    fabric,
    frameworks,
    gpu,
    hardware,
    harmless,
    health,
    host,
    kernel,
    launcher,
    management,
    native,
    nccl,
    nccl_warn,
    npu,
    nvidia_driver,
    program,
    runtime,
    schedulers,
    storage,
    switches,
)
from brctl.evidence.logs.unexplained import ALARM_ANCHORS

SHIPPED: tuple[Signature, ...] = (
    *gpu.SIGNATURES,
    *dcgm.SIGNATURES,
    *nvidia_driver.SIGNATURES,
    *cuda.SIGNATURES,
    *nccl.SIGNATURES,
    *host.SIGNATURES,
    *launcher.SIGNATURES,
    *program.SIGNATURES,
    *hardware.SIGNATURES,
    *storage.SIGNATURES,
    *fabric.SIGNATURES,
    *switches.SIGNATURES,
    *bmc.SIGNATURES,
    *management.SIGNATURES,
    *accelerator.SIGNATURES,
    *runtime.SIGNATURES,
    *cuda_errors.SIGNATURES,
    *nccl_warn.SIGNATURES,
    *frameworks.SIGNATURES,
    *schedulers.SIGNATURES,
    *native.SIGNATURES,
    *npu.SIGNATURES,
    *health.SIGNATURES,
    *harmless.SIGNATURES,
    *kernel.SIGNATURES,
    *witnesses.SIGNATURES,
)
"""Order is meaning only between rows on one line: the first of equal strength is quoted."""

PROGRESS_ANCHORS = frozenset({"loss", "grad norm", "grad_norm", "gradient norm"})
"""Texts of training progress; a line with these alone is read for its numbers only."""

READER_ANCHORS: tuple[str, ...] = (
    "traceback (most recent call last)",
    'file "',
    'file \\"',
    "file &quot;",
    "stopiteration",
    "unsupported:",
    "systemexit",
    *ALARM_ANCHORS,
    *sorted(PROGRESS_ANCHORS),
)
"""Texts the readers of tracebacks, of alarms and of progress need besides the signatures' own."""


def anchors_of(signatures: Iterable[Signature]) -> tuple[str, ...]:
    """Every text the streaming engine must find, once, in order.

    Harmless lines need none: they only silence what something else matched.
    """
    speaking = (s for s in signatures if s.part is not Part.BENIGN)
    own = (anchor for signature in speaking for anchor in signature.anchors)
    return tuple(dict.fromkeys((*READER_ANCHORS, *own)))
