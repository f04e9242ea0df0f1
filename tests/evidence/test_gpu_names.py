"""A GPU has one name for people, whatever id it answers by, and also when it answers no more."""

from brctl.evidence.gpu_names import gpu_names, name_gpus
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Gap, Role, Subject, Weight
from brctl.model.fault import FaultClass
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

UUID = "gpu:GPU-8f6d0000-0000-0000-0000-000000000000"
SLOTS = ("0000:18:00.0", "0000:4a:00.0")


def report(*rows: tuple[str, str, Value], bus: str = " ".join(SLOTS)) -> NodeReport:
    rows = (
        ("gpu.devices.pci_addresses", "", bus),
        ("gpu.device.index", UUID, 0),
        ("gpu.device.pci", UUID, SLOTS[0]),
        *rows,
    )
    found = tuple(Measurement(*row) for row in rows)
    result = CheckResult("gpu.devices", ProbeStatus.MEASURED, found)
    return NodeReport("n3", Outcome.ANSWERED, (result,))


def seen(device: str, text: str, weight: Weight = Weight.CONVICTS) -> Evidence:
    subject = Subject("n3", device)
    return Evidence("kind", subject, weight, FaultClass.GPU_LOST, Role.ROOT, "check", text)


def test_a_gpu_is_called_by_index_and_slot_by_whichever_id() -> None:
    names = gpu_names(report())
    assert names[UUID] == names[f"pci:{SLOTS[0]}"] == "gpu 0 (slot 0000:18:00.0)"


def test_a_lost_gpu_has_the_slot_that_nobody_else_has() -> None:
    lost = ("gpu.device.lost", "gpu:index-1", True)
    names = gpu_names(report(lost))
    assert names["gpu:index-1"] == names[f"pci:{SLOTS[1]}"] == "gpu 1 (slot 0000:4a:00.0)"


def test_a_lost_gpu_has_no_slot_where_that_cannot_be_told() -> None:
    lost = ("gpu.device.lost", "gpu:index-1", True)
    assert gpu_names(report(lost, bus=""))["gpu:index-1"] == "gpu 1"
    more = " ".join([*SLOTS, "0000:9b:00.0"])
    assert gpu_names(report(lost, bus=more))["gpu:index-1"] == "gpu 1"


def test_sentences_name_the_gpu_and_the_subject_keeps_its_id() -> None:
    (item,) = name_gpus(report(), [seen(UUID, f"{UUID} is hot")])
    assert item.text == "gpu 0 (slot 0000:18:00.0) is hot"
    assert item.subject == Subject("n3", UUID)
    assert str(item.subject) == "n3 gpu 0 (slot 0000:18:00.0)"


def test_a_check_asked_alone_takes_the_names_of_the_look_before() -> None:
    alone = NodeReport("n3", Outcome.ANSWERED, ())
    (item,) = name_gpus(alone, [seen(UUID, "hot")], before=report())
    assert item.subject.called == "gpu 0 (slot 0000:18:00.0)"


def test_a_link_is_called_by_its_gpu() -> None:
    gap = Gap(Subject("n3", f"link:{UUID[4:]}/7"), "gpu.nvlink", "no reading")
    (named,) = name_gpus(report(), [gap])
    assert named.subject.called == "gpu 0 (slot 0000:18:00.0) link 7"


def test_what_has_no_name_keeps_its_own() -> None:
    others = [seen("pci:0000:c1:00.0", "an AER error"), seen("disk:/ckpt", "full")]
    assert list(name_gpus(report(), others)) == others
    assert [item.subject.called for item in others] == ["pci:0000:c1:00.0", "disk:/ckpt"]
