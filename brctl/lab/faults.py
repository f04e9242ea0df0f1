"""What `lab break` can do to a node, each fault live and real at its level.

A GPU fault changes what the fake NVML library answers and, where a driver would log it, the node's
kernel log; if a real GPU of that kind would end the process using it, the node's rank dies with the
text CUDA would give. A GPU that computes or sends wrongly does so in every torch process of the
node, and nothing says so. Rank faults happen inside the training process; those of code and data on
whichever node it runs. Node and network faults happen to the processes and interfaces themselves.
"""

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brctl.lab.namespaces import run_ip, shape_link
from brctl.lab.processes import send
from brctl.lab.site import FaultSite, write_clock
from brctl.lab.wrong_results import PRODUCTS, SENT
from brctl.model.errors import UsageError

Lever = Callable[[FaultSite], None]
BROKEN_LINK = 5
SHARD = "shard-0007.tar"
SLOW_RANK_S = 0.6
BATCHES_BEHIND = 3
CLOCK_SKEW_S = 30.0
STEPS_AHEAD = 5
"""What strikes all ranks in one step is told before any of them is there."""
JUMP_FROM_STEP = 210
"""Before it losses rise and fall by themselves, and no rule calls that a jump."""
SLOW_LINK = "tbf rate 20mbit burst 64kb latency 400ms"
_UNKNOWN = "pid='<unknown>', name=<unknown>"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that can be broken.

    Attributes:
        say: The truth in one sentence; `{node}` is replaced.
        expected: The fault class a right verdict names.
        apply: Break it.
        heal: Undo what giving the node a healthy state does not undo.
        subject: What broke, in the words measurements use; "" for the node itself.
        needs_netns: Whether it takes a node with namespaces of its own.
        is_wrong_result: Whether it can be had with a probability, from a size or a temperature on.
    """

    name: str
    say: str
    expected: str
    apply: Lever
    heal: Lever
    subject: Callable[[FaultSite], str]
    needs_netns: bool = False
    is_wrong_result: bool = False


def _nothing(site: FaultSite) -> None:
    """Giving the node a healthy state undoes it."""


def _node(site: FaultSite) -> str:
    return ""


def _gpu(site: FaultSite) -> str:
    return f"gpu:{site.gpu_uuid}"


def _link(site: FaultSite) -> str:
    return f"link:{site.gpu_uuid}/{BROKEN_LINK}"


def _xid(site: FaultSite, code: int, text: str) -> str:
    return f"NVRM: Xid (PCI:{site.pci}): {code}, {_UNKNOWN}, {text}"


def _gpu_ecc(site: FaultSite) -> None:
    site.set_gpu(
        ecc__uncorrected__volatile="4",
        ecc__uncorrected__aggregate="4",
        ecc__uncorrected__volatile__dram="4",
        ecc__uncorrected__aggregate__dram="4",
        remap__pending="1",
        remap__uncorrected="1",
    )
    site.log_kernel(
        _xid(
            site,
            48,
            "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer "
            "at partition 4, subpartition 1.",
        ),
        _xid(
            site,
            63,
            "Row Remapper: New row (0x0000000000cc4ee4) marked for remapping, "
            "reset gpu to activate.",
        ),
    )
    site.trouble_rank(cuda_error="uncorrectable ECC error encountered")


def _row_remap_failure(site: FaultSite) -> None:
    site.set_gpu(
        remap__failure="1", remap__uncorrected="8", remap__histogram__none="1",
        remap__histogram__max="639", ecc__uncorrected__aggregate="9",
        ecc__uncorrected__aggregate__dram="9",
    )  # fmt: skip
    site.log_kernel(_xid(site, 64, "Row Remapper: Failed to remap row (0x0000000000cc4ee4)."))


def _gpu_lost(site: FaultSite) -> None:
    site.set_gpu(all="!15")
    site.log_kernel(
        f"NVRM: GPU at PCI:{site.pci}: {site.gpu_uuid}",
        _xid(site, 79, "GPU has fallen off the bus."),
        f"NVRM: GPU {site.pci}.0: GPU has fallen off the bus.",
    )
    site.trouble_rank(cuda_error="unknown error")


def _pcie_degraded(site: FaultSite) -> None:
    site.set_gpu(pcie__gen="1", pcie__width="4", pcie__replay="4127", pcie__speed="2500")
    site.log_kernel(
        f"pcieport 0000:00:01.0: AER: Correctable error message received from {site.pci}.0",
        f"nvidia {site.pci}.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, "
        "(Receiver ID)",
    )
    site.trouble_rank(slow_s=SLOW_RANK_S)


def _thermal(site: FaultSite) -> None:
    site.set_gpu(
        temp="94", temp__memory="97", temp__margin="0", clock__sm="345", clock__graphics="345",
        clocks__reasons="0x68",
    )  # fmt: skip
    site.trouble_rank(slow_s=SLOW_RANK_S)


def _nvlink_down(site: FaultSite) -> None:
    site.set_link(BROKEN_LINK, state="0", error__recovery="12", error__replay="880")
    site.log_kernel(
        _xid(
            site,
            74,
            f"NVLink: fatal error detected on link {BROKEN_LINK}"
            "(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
        )
    )


def _rank_hang(site: FaultSite) -> None:
    site.trouble_rank(hang=True)


def _rank_stop(site: FaultSite) -> None:
    ranks = site.trainers()
    if not ranks:
        raise UsageError(f"no rank runs on {site.name}", hint="start the job first")
    send(ranks, signal.SIGSTOP)


def _rank_go_on(site: FaultSite) -> None:
    send(site.trainers(), signal.SIGCONT)


def _rank_mismatch(site: FaultSite) -> None:
    site.trouble_rank(mismatch=True)


def _kill_loader(site: FaultSite) -> None:
    send((site.loader(),), signal.SIGKILL)


def _hang_loader(site: FaultSite) -> None:
    site.trouble_rank(loader_hung=True)


def _stick_source(site: FaultSite) -> None:
    """A pipe nobody writes to stands for a shard on a file system that does not answer."""
    path = site.paths.work / SHARD
    if not path.exists():
        os.mkfifo(path)
    site.trouble_rank(loader_source=str(path))


def _slow_loader(site: FaultSite) -> None:
    site.trouble_rank(loader_slow_s=SLOW_RANK_S)


def _skew_loader(site: FaultSite) -> None:
    site.trouble_rank(loader_skew=True)


def _rewind_loader(site: FaultSite) -> None:
    site.trouble_rank(loader_rewound=BATCHES_BEHIND)


def _rank_slow(site: FaultSite) -> None:
    site.trouble_rank(slow_s=SLOW_RANK_S)


def _rank_nan(site: FaultSite) -> None:
    site.trouble_rank(nan=True)


def _compute_wrongly(site: FaultSite) -> None:
    site.falsify(PRODUCTS)


def _send_wrongly(site: FaultSite) -> None:
    site.falsify(SENT)


def _nan_code(site: FaultSite) -> None:
    step, _ = site.step_and_data()
    site.trouble_job(nan_from=step + STEPS_AHEAD)


def _bad_batch(site: FaultSite) -> None:
    step, data = site.step_and_data()
    site.trouble_job(bad_batch=[step + STEPS_AHEAD, data])


def _loss_jump(site: FaultSite) -> None:
    step, _ = site.step_and_data()
    site.trouble_job(jump_at=max(step + STEPS_AHEAD, JUMP_FROM_STEP))


def _heal_job(site: FaultSite) -> None:
    site.untrouble_job()


def _rank_crash(site: FaultSite) -> None:
    site.trouble_rank(crash=True)


def _node_dead(site: FaultSite) -> None:
    site.power_off()


def _freeze(site: FaultSite) -> None:
    site.freeze()


def _thaw(site: FaultSite) -> None:
    site.thaw()


def _slow_link(site: FaultSite) -> None:
    _unslow_link(site)
    shape_link(site.interface, SLOW_LINK)
    site.run_inside(f"tc qdisc add dev eth0 root {SLOW_LINK}")


def _unslow_link(site: FaultSite) -> None:
    shape_link(site.interface, None)
    if site.is_on():
        site.run_inside("tc qdisc del dev eth0 root 2>/dev/null || :")


def _cut_link(site: FaultSite) -> None:
    run_ip(site.record, [f"link set {site.interface} down"])


def _mend_link(site: FaultSite) -> None:
    run_ip(site.record, [f"link set {site.interface} up"], forgiving=True)


def _refuse_ssh(site: FaultSite) -> None:
    site.refuse_ssh(refuse=True)


def _accept_ssh(site: FaultSite) -> None:
    if site.is_on():
        site.refuse_ssh(refuse=False)


def _fill_disk(site: FaultSite) -> None:
    site.run_inside(f"cat /dev/zero > {site.paths.scratch}/core.dump 2>/dev/null || :")


def _free_disk(site: FaultSite) -> None:
    if site.is_on():
        site.run_inside(f"rm -f {site.paths.scratch}/core.dump")


def _skew_clock(site: FaultSite) -> None:
    write_clock(site.files.clock, CLOCK_SKEW_S)


_TABLE = (
    Fault("gpu-ecc", "a GPU of {node} has uncorrectable memory errors; its rank died of them",
          "gpu-memory-ecc", _gpu_ecc, _nothing, _gpu),
    Fault("row-remap-failure", "a GPU of {node} has no spare rows left to repair its memory",
          "gpu-memory-ecc", _row_remap_failure, _nothing, _gpu),
    Fault("gpu-lost", "a GPU of {node} has fallen off the bus; its rank died of it",
          "gpu-lost", _gpu_lost, _nothing, _gpu),
    Fault("pcie-degraded", "a GPU of {node} talks to its host over 4 lanes of generation 1",
          "pcie", _pcie_degraded, _nothing, _gpu),
    Fault("thermal", "a GPU of {node} is too hot and slows down",
          "thermal-power", _thermal, _nothing, _gpu),
    Fault("nvlink-down", "an NVLink of a GPU of {node} is down",
          "nvlink", _nvlink_down, _nothing, _link),
    Fault("gpu-wrong", "a GPU of {node} computes matrix products with one wrong element",
          "silent-corruption", _compute_wrongly, _nothing, _gpu, is_wrong_result=True),
    Fault("gpu-wrong-comm", "a GPU of {node} sends tensors with one wrong element",
          "silent-corruption", _send_wrongly, _nothing, _gpu, is_wrong_result=True),
    Fault("rank-hang", "a rank on {node} never enters its next all-reduce",
          "hang-mismatch", _rank_hang, _nothing, _node),
    Fault("rank-stop", "the ranks on {node} are stopped, as by a debugger or SIGSTOP",
          "hang-mismatch", _rank_stop, _rank_go_on, _node),
    Fault("rank-mismatch", "a rank on {node} entered a barrier where all others average gradients",
          "hang-mismatch", _rank_mismatch, _nothing, _node),
    Fault("rank-slow", "a rank on {node} computes slower than all others",
          "straggler-slow", _rank_slow, _nothing, _node),
    Fault("rank-nan", "a rank on {node} computes a loss that is not a number",
          "numeric-nan", _rank_nan, _nothing, _node),
    Fault("nan-code", "the training code makes NaN of every loss, on all nodes from one step on",
          "numeric-nan", _nan_code, _heal_job, _node),
    Fault("bad-batch", "all labels of one batch are masked: the loss of its rank is NaN in that"
          " step, on {node} and wherever else it is read", "numeric-nan", _bad_batch, _heal_job,
          _node),
    Fault("loss-jump", "the learning rate is a thousand times too large in one step, on all nodes",
          "numeric-nan", _loss_jump, _heal_job, _node),
    Fault("rank-crash", "the training code on {node} raised an exception of its own",
          "user-code", _rank_crash, _nothing, _node),
    Fault("loader-killed", "a data-loader worker on {node} was killed with SIGKILL",
          "data-loader", _kill_loader, _nothing, _node),
    Fault("loader-hung", "the data-loader worker of a rank on {node} never ends with one sample",
          "data-loader", _hang_loader, _nothing, _node),
    Fault("source-stuck", "a data shard that a loader on {node} reads is never answered",
          "storage-checkpoint", _stick_source, _nothing, _node),
    Fault("loader-slow", "the data loader of a rank on {node} is slower than a step",
          "data-loader", _slow_loader, _nothing, _node),
    Fault("loader-skew", "the batches of a rank on {node} are longer than all others",
          "unknown", _skew_loader, _nothing, _node),
    Fault("loader-rewound", "checkpoints have an old loader state of a rank on {node}: a restart"
          " from one repeats batches", "data-loader", _rewind_loader, _nothing, _node),
    Fault("node-dead", "{node} has no power",
          "node-failure", _node_dead, _nothing, _node),
    Fault("node-frozen", "{node} is frozen: it takes connections and never answers",
          "node-failure", _freeze, _thaw, _node),
    Fault("link-slow", "the network cable of {node} carries 20 Mbit/s",
          "network-link", _slow_link, _unslow_link, _node, needs_netns=True),
    Fault("link-cut", "the network cable of {node} is cut",
          "node-failure", _cut_link, _mend_link, _node, needs_netns=True),
    Fault("ssh-refused", "{node} refuses SSH while its ranks go on",
          "unknown", _refuse_ssh, _accept_ssh, _node),
    Fault("disk-full", "the scratch disk of {node} is full",
          "disk-full", _fill_disk, _free_disk, _node, needs_netns=True),
    Fault("clock-skew", "the clock of {node} is 30 s ahead",
          "environment-mismatch", _skew_clock, _nothing, _node),
)  # fmt: skip

FAULTS: Mapping[str, Fault] = {fault.name: fault for fault in _TABLE}
