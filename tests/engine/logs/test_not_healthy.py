"""Logs that once read as healthy, or as another's fault, because one line of them sounded well."""

# ruff: noqa: E501 - a log line is quoted whole

import pytest

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.model.fault import FaultClass

A_ROW_THAT_PASSES = [
    "GPU 3 : FAIL\nGPU 4 : PASS",
    "GPU 4 : PASS\nGPU 3 : FAIL",
    "GPU 4 : PASS\nGPU 3 : FAILED, 12 errors",
    "HBM : PASS\nPCIe : PASS\nNVLink : 3 of 18 links missing",
    "[CudaDevice(id=0), CudaDevice(id=1), CudaDevice(id=2)]\nexpected 8 devices but got 3",
    "node01 : 372 GB/s PASS\nnode02 : 371 GB/s PASS\nnode03 : 44 GB/s\nnode04 : 370 GB/s PASS\nno errors were found",
]  # fmt: skip
GONE_ON_WITHOUT = [
    "\n".join(["could not save checkpoint to /ckpt/step_4000: I/O error; continuing without checkpoint"] * 3),
    "could not load checkpoint /ckpt/step_4000: corrupt shard, will start from scratch",
    "\n".join(["failed to read /data/shard-00031.tar: Stale file handle (skipping)"] * 2),
    "NCCL WARN NET/IB : unable to open device mlx5_0, falling back to NET/Socket",
    "CUDA out of memory on GPU 3, will be retried with batch 4\nCUDA out of memory on GPU 3, will be retried with batch 2\nCUDA out of memory on GPU 3, will be retried with batch 1\ngiving up",
    "failed to read /data/shard-0003.tar, skipping (ignored)\nfailed to read /data/shard-0004.tar, skipping (ignored)\nno samples left, stopping",
]  # fmt: skip
ANOTHER_CONTAINER = '  Warning  Failed  3m  kubelet  Failed to pull image "reg/train:1": manifest unknown\n  Normal   Started  2m  kubelet  Started container istio-proxy'
AN_ANSWERING_SENSOR = [
    "PS1 Status | C8h | ok  | 10.1 | Presence detected\nPS2 Status | C9h | ok  | 10.2 | Presence detected, Failure detected, Power Supply AC lost",
    "   3 | Power Supply PS2 | OK | Power Supply AC lost | Asserted",
    "PS Redundancy | 77h | ok | 7.1 | Redundancy Lost",
]  # fmt: skip
BESIDE_A_WITNESS = [
    ("node-agent: GPU 3 task hung: no heartbeat from GPU since Xid 79 GPU has fallen off the bus", FaultClass.GPU_LOST),
    ("(raylet) NodeDiedError: node 10.0.0.3 was killed due to low memory, Out of memory: Killed process 3321 (ray::train)", FaultClass.CPU_OOM),
    ("[rank3] RuntimeError: The connection to the C10d store has failed: No space left on device", FaultClass.DISK_FULL),
    ("RuntimeError: DataLoader worker (pid 3312) is killed by signal: Terminated. CUDA out of memory", FaultClass.GPU_OOM),
    ("node gpu-7 reason: kernel panic - not syncing: Fatal machine check; marked dead", FaultClass.NODE_FAILURE),
    ("NVRM: Xid (PCI:0000:3b:00): 79, node agent: no heartbeat from GPU", FaultClass.GPU_LOST),
]  # fmt: skip
LOST_LINKS = [
    "gpu-1 kernel: bond0: (slave eth0): link status definitely down\ngpu-1 kernel: bond0: (slave eth1): link status definitely down\ngpu-2 kernel: bond0: (slave eth2): link status definitely down",
    "gpu-01: NIC mlx5_3 link down since 3 days\ngpu-02: NIC mlx5_1 link down since 2 hours\ngpu-03: NIC mlx5_0 link down since 6 weeks",
    "\n".join(f"Mar  2 04:10:0{n} gpu-{n} kernel: mlx5_core 0000:9a:00.0 eth4: Link down, cable unplugged" for n in (1, 2, 3)),
]  # fmt: skip
ENDS_IN_AN_ERROR = "\n".join([
    "[12:00:01][INFO] - Epoch: [7] [600/2916] lr: 0.000072 loss: 1.3483",
    "[12:00:09][main][ERROR] - Error executing job with overrides: ['train.find_unused_parameters=false']",
])  # fmt: skip
IDLE_PORTS_BEFORE_A_LOST_GPU = (
    "".join(f"Mar  2 04:10:0{n} gpu-{n} kernel: igb 0000:01:00.0 eno{n}: Link is Down\n" for n in (1, 2, 3))
    + "Mar  2 04:15:00 gpu-4 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
)  # fmt: skip


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier()


def said(classifier: Classifier, log: str) -> FaultClass:
    inputs = [("a.log", Blocks(iter([log.encode() + b"\n"])))]
    return classifier.classify_inputs(inputs).overall.fault


@pytest.mark.parametrize(
    "log",
    [
        *A_ROW_THAT_PASSES,
        *GONE_ON_WITHOUT,
        ANOTHER_CONTAINER,
        *AN_ANSWERING_SENSOR,
        ENDS_IN_AN_ERROR,
    ],
)
def test_a_line_that_sounds_well_proves_nothing_of_its_neighbours(
    classifier: Classifier, log: str
) -> None:
    assert said(classifier, log) is not FaultClass.NO_FAULT


def test_a_container_that_started_tells_of_no_image_of_another(classifier: Classifier) -> None:
    assert said(classifier, ANOTHER_CONTAINER) is FaultClass.ENVIRONMENT_MISMATCH


def test_a_checkpoint_given_up_is_still_named(classifier: Classifier) -> None:
    assert said(classifier, GONE_ON_WITHOUT[0]) is FaultClass.STORAGE_CHECKPOINT


@pytest.mark.parametrize(("line", "fault"), BESIDE_A_WITNESS)
def test_a_cause_that_a_witness_states_is_one(
    classifier: Classifier, line: str, fault: FaultClass
) -> None:
    assert said(classifier, line) is fault


@pytest.mark.parametrize("log", LOST_LINKS)
def test_links_lost_side_by_side_blame_no_switch(classifier: Classifier, log: str) -> None:
    """Which port belongs to whom, and when it was lost, stands in few of such lines."""
    assert said(classifier, log) is FaultClass.NETWORK_LINK


def test_idle_ports_do_not_outweigh_a_lost_gpu(classifier: Classifier) -> None:
    assert said(classifier, IDLE_PORTS_BEFORE_A_LOST_GPU) is FaultClass.GPU_LOST
