"""The fault classes: stable names that verdicts, playbooks, documents and metrics share."""

from enum import StrEnum


class FaultClass(StrEnum):
    """What is broken, as far as an action needs to know. Part of the public interface."""

    GPU_MEMORY_ECC = "gpu-memory-ecc"
    GPU_LOST = "gpu-lost"
    NVLINK = "nvlink"
    PCIE = "pcie"
    THERMAL_POWER = "thermal-power"
    DRIVER_FIRMWARE = "driver-firmware"
    SILENT_CORRUPTION = "silent-corruption"
    GPU_SLOW = "gpu-slow"
    NETWORK_IB = "network-ib"
    NETWORK_ETH = "network-eth"
    NETWORK_LINK = "network-link"
    NETWORK_SWITCH = "network-switch"
    NODE_FAILURE = "node-failure"
    HOST_KERNEL = "host-kernel"
    CPU_OOM = "cpu-oom"
    DISK_FULL = "disk-full"
    STORAGE_CHECKPOINT = "storage-checkpoint"
    STRAGGLER_SLOW = "straggler-slow"
    GPU_OOM = "gpu-oom"
    USER_CODE = "user-code"
    HANG_MISMATCH = "hang-mismatch"
    NUMERIC_NAN = "numeric-nan"
    DATA_LOADER = "data-loader"
    NCCL_CONFIG = "nccl-config"
    ENVIRONMENT_MISMATCH = "environment-mismatch"
    PREEMPTION_SIGTERM = "preemption-sigterm"
    NO_FAULT = "no-fault"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Whose side the fault is on."""

    INFRA = "infra"
    USER = "user"
    UNKNOWN = "unknown"


class Branch(StrEnum):
    """Which way through the decision tree a class takes (brctl/playbook/tree.py).

    Machine, network, user, numbers, unclear and group are the paper's; the others end with a
    person, whom neither another node nor another start can spare the work.
    """

    MACHINE = "machine"
    NETWORK = "network"
    USER = "user"
    TOLD = "told to stop"
    NUMBERS = "numbers"
    UNCLEAR = "unclear"
    GROUP = "group"
    SPACE = "space"
    STORAGE = "storage"
    SWITCH = "switch"
    CONFIG = "configuration"
    NOTHING = "nothing"


class Action(StrEnum):
    """What to do; a closed list, so that playbooks can match on it. Only the tree chooses."""

    NONE = "none"
    SWAP = "swap"
    CORDON = "cordon"
    RESTART = "restart"
    ROLLBACK_CODE = "rollback-code"
    RESET_GPU = "reset-gpu"
    EVICT_GROUP = "evict-group"
    STOP_TIME_CHECKS = "stop-time-checks"
    LOCALISE = "localise"
    FREE_SPACE = "free-space"
    FIX_CONFIG = "fix-config"
    FIX_CODE = "fix-code"
    PAGE_NETWORK = "page-network"
    PAGE_STORAGE = "page-storage"
    COLLECT_MORE = "collect-more"
    WATCH = "watch"
