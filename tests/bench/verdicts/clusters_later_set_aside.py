"""The half of `clusters_later` that was put aside, by the same coins."""

from random import Random

from brctl.model.fault import FaultClass as F
from brctl.model.sweeps.report import CheckResult, ProbeStatus
from tests.bench.verdicts.clusters_later import slow_in_collectives
from tests.bench.verdicts.fleet import Fleet, _address, _leave, fleet, slow_ranks, stands_still
from tests.bench.verdicts.incident import Tell, Truth, nobody, place
from tests.bench.verdicts.oncall_machines import kernel_says

_GPU = "gpu:GPU-00000001-0000-0000-0000-000000000000"
_LINK = frozenset({F.NETWORK_LINK, F.NETWORK_ETH, F.NETWORK_IB})


def ib_flap_ends_the_job(rng: Random) -> tuple[Fleet, Truth]:
    """Retries run out at everybody who sends to it; the port is up again when somebody looks."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    ago = rng.uniform(10.0, 200.0)
    for values in it.ranks:
        mine = ago + rng.uniform(0.0, 2.0)
        values |= {"phase": "all_reduce", "phase_age_s": mine, "progress_age_s": mine}
        _leave(
            values, 1,
            f"{rng.choice(it.nodes)}:4242:4501 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got"
            " completion from peer 10.1.0.7<51234> with status=12 opcode=0 len=0 vendor err 129"
            " (Recv)\ntorch.distributed.DistBackendError: NCCL error: remote process exited or"
            " there was a network error, NCCL version 2.21.5\n",
        )  # fmt: skip
    for node in it.nodes:
        for name, value in (
            ("state", "ACTIVE"), ("physical", "LinkUp"), ("gbit_per_s", 400),
            ("link_downed", 3 if node == bad else 0),
        ):  # fmt: skip
            it.reads(node, "fabric.ibport", f"fabric.ibport.{name}", value, "ibport:mlx5_0/1")
    kernel_says(it, bad, "mlx5_core 0000:0c:00.0: Port: 1 Link DOWN")
    return it, Truth(_LINK, frozenset({bad}), frozenset({bad}))


def wandb_upload_by_rank_0(rng: Random) -> tuple[Fleet, Truth]:
    """A tracking server does not answer, and its client has no time limit."""
    it = fleet(rng, most=64)
    home = next(node for node in it.nodes if 0 in it.job.ranks_on(node))
    stands_still(it, [0], where="optimizer")
    it.stacks[0] = (
        "ssl.py:SSLSocket.read", "socket.py:SocketIO.readinto", "client.py:HTTPResponse.begin",
        "connectionpool.py:HTTPConnectionPool.urlopen", "adapters.py:HTTPAdapter.send",
        "sessions.py:Session.request", "tracking.py:log_metrics", "train.py:main",
    )  # fmt: skip
    return it, place([F.USER_CODE, F.HANG_MISMATCH], home)


def checkpoint_loads_after_a_restart(rng: Random) -> tuple[Fleet, Truth]:
    """Some hundred gigabytes for everybody: no step is done for minutes."""
    it = fleet(rng, most=64)
    it.past = False
    for rank, values in enumerate(it.ranks):
        age = rng.uniform(40.0, 60.0)
        for name in [name for name in values if name.startswith("recent_")]:
            del values[name]
        for name in ("step_s", "wait_s"):
            values.pop(name, None)
        values |= {"phase": "start", "phase_age_s": age, "progress_age_s": age}
        values["process_state"] = rng.choice("RRD")
        it.stacks[rank] = (
            "serialization.py:_load.._load_tensor", "serialization.py:_load",
            "serialization.py:load", "train.py:resume", "train.py:main", "train.py:<module>",
        )  # fmt: skip
    return it, nobody(F.NO_FAULT, F.UNKNOWN)


def progress_folder_full_while_training(rng: Random) -> tuple[Fleet, Truth]:
    """The disk with one node's progress files is full; training goes on, unseen there."""
    it = fleet(rng, most=64)
    (there,) = it.some_nodes(1)
    old = rng.uniform(300.0, 4000.0)
    for rank in it.job.ranks_on(there):
        values = it.ranks[rank]
        values["step"] = max(1, int(values["step"]) - int(old / it.step_s))
        values |= {"progress_age_s": old, "phase_age_s": old}
    disk = "disk:/srv/site/lab/job/logs"
    it.reads(there, "host.disk", "host.disk.free_bytes", 0, disk)
    it.reads(there, "host.disk", "host.disk.free_pct", 0.0, disk)
    return it, place([F.DISK_FULL], there)


def aer_flood_on_a_slow_node(rng: Random) -> tuple[Fleet, Truth]:
    """Every packet to one GPU is sent several times: corrected, and slow."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.2, 1.8))
    it.reads(bad, "gpu.pcie", "gpu.pcie.replays", rng.randrange(40_000, 900_000), _GPU)
    for _ in range(4):
        kernel_says(
            it, bad,
            "pcieport 0000:29:01.0: AER: Multiple Corrected error message received from"
            " 0000:2a:00.0",
            "nvidia 0000:2a:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer,"
            " (Receiver ID)",
        )  # fmt: skip
    return it, Truth(frozenset({F.PCIE, F.STRAGGLER_SLOW}), frozenset({bad}), frozenset({bad}))


def ended_by_its_time_limit(rng: Random) -> tuple[Fleet, Truth]:
    it = fleet(rng, most=64)
    ago = rng.uniform(10.0, 300.0)
    for values in it.ranks:
        values |= {"phase_age_s": ago, "progress_age_s": ago}
        _leave(
            values, -15,
            "slurmstepd: error: *** STEP 8812.0 ON n1 CANCELLED AT 2026-03-14T09:20:11 DUE TO TIME"
            " LIMIT ***\n",
        )  # fmt: skip
    return it, nobody(F.PREEMPTION_SIGTERM, F.NO_FAULT)


def driver_hangs_on_one_slow_node(rng: Random) -> tuple[Fleet, Truth]:
    """Every question to its driver takes too long, and so does every step."""
    it = fleet(rng, most=64)
    (bad,) = it.some_nodes(1)
    slow_ranks(it, it.job.ranks_on(bad), rng.uniform(1.5, 4.0))
    for check in ("gpu.clocks", "gpu.ecc", "gpu.devices", "gpu.pcie", "gpu.nvlink"):
        it.lost_checks[bad, check] = CheckResult(check, ProbeStatus.TIMED_OUT)
    return it, Truth(
        frozenset({F.DRIVER_FIRMWARE, F.STRAGGLER_SLOW}), frozenset({bad}), frozenset({bad})
    )


def nic_queue_drops_on_one_node_and_gradients_wait(rng: Random) -> tuple[Fleet, Truth]:
    """Its receive queue is too short: packets reach it and are thrown away."""
    it = fleet(rng, least=6, most=64)
    (bad,) = it.some_nodes(1)
    slow_in_collectives(it, rng.uniform(1.4, 2.5))
    it.reads(
        bad, "fabric.eth", "fabric.eth.rx_dropped", rng.randrange(200_000, 900_000), "nic:eth0"
    )
    here = it.nodes.index(bad)
    peer = f"peer:{_address(here)}"
    it.reads(it.nodes[here - 1], "fabric.tcp", "fabric.tcp.lost", 800, peer)
    it.reads(it.nodes[here - 1], "fabric.tcp", "fabric.tcp.lost_now", 4, peer)
    return it, Truth(_LINK, frozenset({bad}), frozenset({bad}))


TOLD: tuple[Tell, ...] = (
    ib_flap_ends_the_job, wandb_upload_by_rank_0, checkpoint_loads_after_a_restart,
    progress_folder_full_while_training, aer_flood_on_a_slow_node, ended_by_its_time_limit,
    driver_hangs_on_one_slow_node, nic_queue_drops_on_one_node_and_gradients_wait,
)  # fmt: skip
