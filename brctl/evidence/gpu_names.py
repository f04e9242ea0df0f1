"""What people call a GPU: its index and its PCI address; the UUID is what it is known by.

A lost GPU has no address any more: NVML lists GPUs in the order of their addresses, so as many
addresses of the bus as nobody has are those of the lost ones.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from brctl.model.evidence import Evidence, Gap, Subject, Weight
from brctl.model.sweeps.report import NodeReport

_KINDS = ("gpu:", "link:", "pci:")
_BY_INDEX = "gpu:index-"

Observed = TypeVar("Observed", Evidence, Gap)


def gpu_names(report: NodeReport) -> Mapping[str, str]:
    """`gpu 5 (slot 0000:4a:00.0)` by UUID, by index and by address, as `Subject.device` has them.

    Args:
        report: Of one node; a GPU that gpu.devices does not list has no name.
    """
    indexes = {m.subject: str(m.value) for m in report.named("gpu.device.index")}
    slots = {m.subject: str(m.value).lower() for m in report.named("gpu.device.pci")}
    lost = [m.subject for m in report.named("gpu.device.lost") if m.subject.startswith(_BY_INDEX)]
    free = _free_slots(report, slots.values())
    if len(lost) == len(free):
        slots |= zip(lost, free, strict=True)
    indexes |= {subject: subject.removeprefix(_BY_INDEX) for subject in lost}
    names = {subject: gpu_name(index, slots.get(subject)) for subject, index in indexes.items()}
    return names | {f"pci:{slot}": names[s] for s, slot in slots.items() if s in names}


def gpu_name(index: str, slot: str | None) -> str:
    """`gpu 5 (slot 0000:4a:00.0)`; either may be unknown."""
    return " ".join(["gpu", *([index] if index else []), *([f"(slot {slot})"] if slot else [])])


def _free_slots(report: NodeReport, taken: Iterable[str]) -> list[str]:
    bus = {a for m in report.named("gpu.devices.pci_addresses") for a in str(m.value).split()}
    return sorted(bus - set(taken))


def name_gpus(
    report: NodeReport, observed: Iterable[Observed], before: NodeReport | None = None
) -> Iterator[Observed]:
    """The same observations, GPUs called by their names; what only clears is read by nobody.

    Args:
        report: Of their node.
        observed: Evidence or gaps.
        before: What the node said earlier, for names where gpu.devices was not asked now.
    """
    names: Mapping[str, str] | None = None
    for item in observed:
        device = item.subject.device
        clears = isinstance(item, Evidence) and item.weight is Weight.CLEARS
        if clears or not device.startswith(_KINDS):
            yield item
            continue
        if names is None:
            names = gpu_names(report) or (gpu_names(before) if before else {})
        yield _named(item, item.subject.name or _name(device, names))


def _name(device: str, names: Mapping[str, str]) -> str:
    """Of a GPU, or of a link of one: `link:GPU-.../7`."""
    kind, _, rest = device.partition(":")
    if kind != "link":
        return names.get(device, "")
    gpu, _, link = rest.rpartition("/")
    name = names.get(f"gpu:{gpu}", "")
    return f"{name} link {link}" if name else ""


def _named(item: Observed, name: str) -> Observed:
    if not name:
        return item
    subject = Subject(item.subject.node, item.subject.device, name)
    if isinstance(item, Gap):
        return replace(item, subject=subject, why=item.why.replace(subject.device, name))
    return replace(item, subject=subject, text=item.text.replace(subject.device, name))
