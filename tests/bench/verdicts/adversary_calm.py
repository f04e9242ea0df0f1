"""An adversary's sound jobs: each shows something that has made somebody evict a good machine."""

from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.adversary_jobs import SOUND
from tests.bench.verdicts.adversary_machines import HANGS, at_s, some_size, stuck_beside
from tests.bench.verdicts.causes_machines import GPU, one_of
from tests.bench.verdicts.fleet import Fleet, _leave, remember
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says


def ended_well_with_an_old_xid(rng: Random) -> tuple[Fleet, Truth]:
    """Two hours ago somebody's kernel read past its buffer; this job ended well since."""
    it = some_size(rng, least=3)
    for values in it.ranks:
        age = rng.uniform(100.0, 900.0)
        values |= {"phase": "done", "phase_age_s": age, "progress_age_s": age}
        _leave(values, 0, "training is done\n")
    text = (
        "NVRM: Xid (PCI:0000:2a:00): 31, pid=3111, name=python3, Ch 00000008, intr 00000000. MMU"
        " Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ 0x7f2c_10000000."
    )
    at_s(it, one_of(it), "gpu.xid", 5000.0, text)
    return it, nobody(F.NO_FAULT)


def old_xid_of_another_job_and_a_hang(rng: Random) -> tuple[Fleet, Truth]:
    """The same line on one node, while a rank of another waits for its lock."""
    it = some_size(rng, least=4)
    there, innocent = it.some_nodes(2)
    stuck_beside(it, there)
    text = (
        "NVRM: Xid (PCI:0000:2a:00): 13, pid=3111, name=python3, Graphics SM Warp Exception on"
        " (GPC 0, TPC 1, SM 0): Out Of Range Address"
    )
    at_s(it, innocent, "gpu.xid", 5000.0, text)
    return it, place(HANGS, there)


def _stale(it: Fleet, node: str) -> None:
    """Its ranks' progress is that of two hours ago: the directory is not written there any more."""
    for rank in it.job.ranks_on(node):
        values = it.ranks[rank]
        values["step"] = max(0, int(values["step"]) - 40)
        values |= {"phase_age_s": 7200.0, "progress_age_s": 7200.0, "phase": "forward"}


def one_node_reads_its_past(rng: Random) -> tuple[Fleet, Truth]:
    """One node tells of two hours ago, all others of steps that need it."""
    it = some_size(rng, least=3)
    _stale(it, it.some_nodes(1, but=[it.nodes[0]])[0])
    return it, nobody(*SOUND)


def past_of_one_and_hang_of_another(rng: Random) -> tuple[Fleet, Truth]:
    """The same node in a job that waits for a rank elsewhere."""
    it = some_size(rng, least=4)
    there, old = it.some_nodes(2)
    stuck_beside(it, there)
    _stale(it, old)
    for rank in it.job.ranks_on(old):
        it.ranks[rank]["process_state"] = "S"
    return it, place(HANGS, there)


def two_kinds_of_gpus(rng: Random) -> tuple[Fleet, Truth]:
    """Half of the nodes have slower boards, which wait for nobody, as on every day."""
    it = some_size(rng, least=4)
    it.past = True
    for node in it.nodes[::2]:
        it.models[node] = "A100"
        for name, value in (("sm_mhz", 1410), ("max_sm_mhz", 1410), ("power_limit_w", 400.0),
                            ("default_power_limit_w", 400.0)):  # fmt: skip
            for gpu in (GPU, GPU.replace("00000001", "00000000")):
                it.reads(node, "gpu.clocks", f"gpu.clocks.{name}", value, gpu)
        for rank in it.job.ranks_on(node):
            it.ranks[rank]["wait_s"] = it.step_s * 0.03
    for node in it.nodes[1::2]:
        for rank in it.job.ranks_on(node):
            it.ranks[rank]["wait_s"] = it.step_s * rng.uniform(0.28, 0.33)
    remember(it)
    return it, nobody(F.NO_FAULT)


def killed_beside_the_trainer(rng: Random) -> tuple[Fleet, Truth]:
    """The log shipper of the same pod went over its own limit; training goes on."""
    it = some_size(rng, least=3)
    there = one_of(it)
    for rank in it.job.ranks_on(there):
        path = "/sys/fs/cgroup/kubepods/pod7/train"
        it.reads(there, "job.cgroup", "job.cgroup.path", path, f"rank:{rank}")
    kernel_says(
        it, there, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=shipper,"
        "mems_allowed=0-1,oom_memcg=/kubepods/pod7/shipper,task_memcg=/kubepods/pod7/shipper,"
        "task=fluent-bit,pid=71,uid=0",
        "Memory cgroup out of memory: Killed process 71 (fluent-bit) total-vm:234567kB,"
        " anon-rss:130000kB, file-rss:0kB, shmem-rss:0kB, UID:0",
    )  # fmt: skip
    return it, nobody(F.NO_FAULT)


def longer_sequences(rng: Random) -> tuple[Fleet, Truth]:
    """A curriculum: steps take longer, and take as many more tokens."""
    it = some_size(rng, least=3)
    it.past = True
    times = rng.uniform(1.4, 2.0)
    it.now_s = it.step_s * times
    for values in it.ranks:
        values |= {"step_s": it.now_s, "wait_s": it.now_s * rng.uniform(0.02, 0.1)}
    remember(it)
    for window in (*(f"past:{n}" for n in range(5)), "recent", "last"):
        tokens = 4_000_000 * (times if not window.startswith("past") else 1.0)
        it.reads(it.nodes[0], "job.ranks", "job.steps.tokens", tokens, window)
    return it, nobody(*SOUND)


def a_scaler_skipped_a_step(rng: Random) -> tuple[Fleet, Truth]:
    """Half precision: one step an hour ago had no finite gradient and was left out."""
    it = some_size(rng, least=3)
    it.past = True
    it.reads(it.nodes[0], "job.ranks", "job.steps.nonfinite", 1, "past:2")
    return it, nobody(F.NO_FAULT)


def another_mix_of_data(rng: Random) -> tuple[Fleet, Truth]:
    """The second stage of training has harder texts: the loss is a tenth higher."""
    it = some_size(rng, least=3)
    it.past = True
    it.losses_now = 2.3 * rng.uniform(1.05, 1.15)
    return it, nobody(F.NO_FAULT)


def caught_and_smaller(rng: Random) -> tuple[Fleet, Truth]:
    """Every rank ran out of GPU memory once, took a smaller batch and goes on."""
    it = some_size(rng, least=3)
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB.\n"
        "caught, trying again with micro batch 2\n"
    )
    for values in it.ranks:
        values["last_words"] = said + "".join(f"step {n} loss 2.1\n" for n in range(9))
    return it, nobody(F.NO_FAULT)


def cable_of_an_unused_port(rng: Random) -> tuple[Fleet, Truth]:
    """Every node has a second adapter that nobody ever plugged in."""
    it = some_size(rng, least=3)
    for node in it.nodes:
        at_s(
            it, node, "host.kernel", 14.0,
            "mlx5_core 0000:98:00.1: Port module event: module 1, Cable unplugged",
            "mlx5_core 0000:98:00.1 ens2f1: Link down",
        )  # fmt: skip
    return it, nobody(F.NO_FAULT)


def a_core_was_warm(rng: Random) -> tuple[Fleet, Truth]:
    """A CPU throttled for a second and said so; no step was later for it."""
    it = some_size(rng, least=3)
    kernel_says(
        it, one_of(it),
        "CPU12: Core temperature above threshold, cpu clock throttled (total events = 1)",
        "CPU12: Core temperature/speed normal",
    )  # fmt: skip
    return it, nobody(F.NO_FAULT)


def leftovers_of_loaders(rng: Random) -> tuple[Fleet, Truth]:
    """Three workers of an earlier epoch were not waited for; nothing lacks."""
    it = some_size(rng, least=3)
    there = one_of(it)
    it.reads(there, "host.leftovers", "host.leftovers.zombie_count", 3)
    return it, nobody(F.NO_FAULT)


def links_with_their_usual_errors(rng: Random) -> tuple[Fleet, Truth]:
    """NVLink and PCIe repeated some packets in a month; the pace is what it was."""
    it = some_size(rng, least=3)
    there, other = it.some_nodes(2)
    it.reads(there, "gpu.nvlink", "gpu.nvlink.replays", 12, GPU)
    it.reads(other, "gpu.pcie", "gpu.pcie.replays", 31, GPU)
    return it, nobody(F.NO_FAULT)


def a_limit_for_all(rng: Random) -> tuple[Fleet, Truth]:
    """The site caps every board to save power since months; pace and past agree."""
    it = some_size(rng, least=3)
    it.past = True
    for node in it.nodes:
        for name, value in (("power_limit_w", 550.0), ("event_reasons", 4), ("sm_mhz", 1600)):
            for gpu in (GPU, GPU.replace("00000001", "00000000")):
                it.reads(node, "gpu.clocks", f"gpu.clocks.{name}", value, gpu)
    return it, nobody(F.NO_FAULT, F.THERMAL_POWER)


TOLD = (
    ended_well_with_an_old_xid, old_xid_of_another_job_and_a_hang, one_node_reads_its_past,
    past_of_one_and_hang_of_another, two_kinds_of_gpus, killed_beside_the_trainer,
    longer_sequences, a_scaler_skipped_a_step, another_mix_of_data, caught_and_smaller,
    cable_of_an_unused_port, a_core_was_warm, leftovers_of_loaders,
    links_with_their_usual_errors, a_limit_for_all,
)  # fmt: skip
