"""More of `clusters`: settings, links and starts. The open half; coins tossed before, as there."""

from collections.abc import Iterable
from random import Random

from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.fleet import (
    WAITING,
    Fleet,
    _address,
    _leave,
    fleet,
    slow_ranks,
    stands_still,
)
from tests.bench.verdicts.incident import Tell, Truth, nobody
from tests.bench.verdicts.oncall_machines import kernel_says

_GPUS = tuple(f"gpu:GPU-0000000{n}-0000-0000-0000-000000000000" for n in range(2))
_LINK = frozenset({F.NETWORK_LINK, F.NETWORK_ETH, F.NETWORK_IB})


def _bad(classes: Iterable[F], *nodes: str) -> Truth:
    return Truth(frozenset(classes), frozenset(nodes), frozenset(nodes))


def _not_begun(it: Fleet, ages_s: Iterable[float]) -> None:
    """No rank has done a step; each began so long ago."""
    it.past = False
    for values, age_s in zip(it.ranks, ages_s, strict=True):
        values |= {"phase": "start", "phase_age_s": age_s, "progress_age_s": age_s}
        for name in [name for name in values if name.startswith("recent_")]:
            del values[name]
        for name in ("step", "step_s", "wait_s"):
            values.pop(name, None)


def slow_in_collectives(it: Fleet, times: float) -> None:
    """Every step takes longer, and nobody is late: it is the way between them."""
    slow_ranks(it, range(it.job.world_size), times)
    for values in it.ranks:
        values |= {"phase": WAITING, "wait_s": it.now_s - it.step_s, "process_state": "S"}
        values["recent_wait_s"] = values["wait_s"]


def power_limit_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """Half the power it was built for, set by somebody and never set back."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_ranks(it, it.ranks_of([bad]), rng.uniform(1.2, 1.7))
    for gpu in _GPUS:
        it.reads(bad, "gpu.clocks", "gpu.clocks.power_limit_w", 350.0, gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.power_w", rng.uniform(345, 351), gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.event_reasons", 4, gpu)
        it.reads(bad, "gpu.clocks", "gpu.clocks.sm_mhz", rng.randrange(1150, 1400), gpu)
    return it, _bad({F.THERMAL_POWER, F.ENVIRONMENT_MISMATCH, F.GPU_SLOW}, bad)


def fabric_manager_down_at_the_start(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    _not_begun(it, [rng.uniform(20.0, 90.0)] * it.job.world_size)
    for rank, values in enumerate(it.ranks):
        if rank in it.job.ranks_on(bad):
            _leave(
                values, 1,
                "Traceback (most recent call last):\n"
                '  File "/home/lee/llm/train.py", line 40, in main\n    torch.cuda.set_device(0)\n'
                "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not"
                " yet initialized\n",
            )  # fmt: skip
        else:
            values["process_state"] = "S"
            it.stacks[rank] = (
                "rendezvous.py:_create_c10d_store", "rendezvous.py:_env_rendezvous_handler",
                "distributed_c10d.py:init_process_group", "train.py:main",
            )  # fmt: skip
    for gpu in _GPUS:
        it.reads(bad, "gpu.fabric_manager", "gpu.fabric.state", "in_progress", gpu)
    return it, _bad({F.NVLINK, F.DRIVER_FIRMWARE, F.ENVIRONMENT_MISMATCH}, bad)


def ib_port_at_a_quarter_of_its_rate(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_in_collectives(it, rng.uniform(1.3, 3.0))
    for node in it.nodes:
        for name, value in (
            ("state", "ACTIVE"), ("physical", "LinkUp"), ("link_downed", 1),
            ("gbit_per_s", 100 if node == bad else 400),
        ):  # fmt: skip
            it.reads(node, "fabric.ibport", f"fabric.ibport.{name}", value, "ibport:mlx5_0/1")
    return it, _bad(_LINK, bad)


def memlock_limit_on_one_node(rng: Random) -> tuple[Fleet, Truth]:
    """Its limits came from another image: no memory can be registered with the adapter."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    _not_begun(it, [rng.uniform(20.0, 90.0)] * it.job.world_size)
    for rank, values in enumerate(it.ranks):
        if rank in it.job.ranks_on(bad):
            said = (
                "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.\n"
                f"{bad}:4242:4501 [0] misc/ibvwrap.cc:194 NCCL WARN Call to ibv_reg_mr failed with"
                " error Cannot allocate memory\n"
                "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353,"
                " unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version"
                " 2.21.5\n"
            )
        else:
            said = (
                "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3353,"
                " remote process exited or there was a network error, NCCL version 2.21.5\n"
                "ncclRemoteError: A call failed possibly due to a network error or a remote process"
                " exiting prematurely.\n"
            )
        _leave(values, 1, f"Traceback (most recent call last):\n{said}")
    return it, _bad({F.ENVIRONMENT_MISMATCH, F.NCCL_CONFIG}, bad)


def one_node_pulls_its_image(rng: Random) -> tuple[Fleet, Truth]:
    """After a restart: no process is there yet, and all others wait for it to join."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    age = rng.uniform(25.0, 200.0)
    _not_begun(it, [age + rng.uniform(0.0, 0.5) for _ in it.ranks])
    for rank, values in enumerate(it.ranks):
        values["process_state"] = "S"
        it.stacks[rank] = (
            "distributed_c10d.py:_store_based_barrier", "distributed_c10d.py:init_process_group",
            "train.py:main", "train.py:<module>",
        )  # fmt: skip
        if rank in it.job.ranks_on(there):
            values.clear()
            del it.stacks[rank]
    return it, nobody(F.NO_FAULT, F.UNKNOWN, seen_at=[there])


def port_flaps_and_all_wait(rng: Random) -> tuple[Fleet, Truth]:
    """Up at the look, and forty times down before."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    stands_still(it, [])
    it.reads(bad, "fabric.eth", "fabric.eth.carrier_changes", rng.randrange(30, 90), "nic:eth0")
    for _ in range(3):
        kernel_says(
            it,
            bad,
            "mlx5_core 0000:98:00.0 eth0: Link down",
            "mlx5_core 0000:98:00.0 eth0: Link up",
        )
    here = it.nodes.index(bad)
    for node, peer in ((bad, (here + 1) % len(it.nodes)), (it.nodes[here - 1], here)):
        it.reads(node, "fabric.tcp", "fabric.tcp.timeouts_in_a_row", 5, f"peer:{_address(peer)}")
        it.reads(node, "fabric.tcp", "fabric.tcp.segments_now", 0, f"peer:{_address(peer)}")
    return it, _bad(_LINK, bad)


def two_slow_for_different_causes(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, least=5, most=64)
    hot, narrow = it.some_nodes(2)
    slow_ranks(it, it.ranks_of([hot, narrow]), rng.uniform(1.3, 2.0))
    it.has(hot, "thermal")
    it.has(narrow, "pcie-degraded")
    return it, _bad({F.THERMAL_POWER, F.PCIE}, hot, narrow)


def rank_in_state_t_by_a_profiler_while_training(rng: Random) -> tuple[Fleet, Truth]:
    """Somebody's profiler stops a rank for the blink in which it reads its stack."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    it.ranks[it.rank_on(there)] |= {"process_state": "t", "kernel_wait": "ptrace_stop"}
    it.ranks_later = [
        {**values, "process_state": "S", "step": int(values["step"]) + 1} for values in it.ranks
    ]
    return it, nobody(F.NO_FAULT)


TOLD: tuple[Tell, ...] = (
    power_limit_on_one_node, fabric_manager_down_at_the_start, ib_port_at_a_quarter_of_its_rate,
    memlock_limit_on_one_node, one_node_pulls_its_image, port_flaps_and_all_wait,
    two_slow_for_different_causes, rank_in_state_t_by_a_profiler_while_training,
)  # fmt: skip
