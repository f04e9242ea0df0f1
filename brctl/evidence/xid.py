"""What NVIDIA's Xid numbers mean, whom they blame, and where the sources disagree.

Xid numbers come from the driver's kernel log. The resolution column is NVIDIA's own bucket of what
to do now (Xid catalogue, docs.nvidia.com/deploy/xid-errors, as parsed by gpud on 2025-10-29). The
last column holds two field practices: `D`, Azure's node health checks drain the node
(azurehpc-health-checks, read 2025); `N`, Meta's gcm lists the number as not critical. They disagree
on some; `Xid.disagreement` says so instead of picking a side.
Fault class and weight are brctl's own judgement: CONVICTS where NVIDIA's immediate action is about
the hardware or its firmware, HINTS where user code is the first suspect or the hardware coped,
CONTEXT where the number never is a root cause alone.
"""
# ruff: noqa: E501  (a table is read by its columns)

from collections.abc import Mapping
from dataclasses import dataclass

from brctl.model.evidence import Role, Weight
from brctl.model.fault import FaultClass

_W = Weight
_F = FaultClass

FALLEN_OFF_THE_BUS = 79
RECOVERY_ACTION = 154


@dataclass(frozen=True, slots=True)
class Xid:
    """One row of the table.

    Attributes:
        cause: Cause class in words.
        immediate: NVIDIA's immediate resolution bucket.
        azure_drains: Azure's health checks drain the node on it.
        meta_not_critical: Meta's gcm does not treat it as critical.
    """

    code: int
    meaning: str
    cause: str
    immediate: str
    fault: FaultClass | None
    weight: Weight
    azure_drains: bool = False
    meta_not_critical: bool = False

    @property
    def role(self) -> Role:
        """Where the event stands: 43 and 45 follow something else."""
        if self.code == 45:
            return Role.TEARDOWN
        if self.code == 43:
            return Role.VICTIM
        return Role.CONTEXT if self.weight is Weight.CONTEXT else Role.ROOT

    @property
    def disagreement(self) -> str:
        """One sentence where NVIDIA, Azure and Meta do not agree; empty where they do."""
        if self.azure_drains and self.meta_not_critical:
            return (
                f"sources disagree: NVIDIA says {self.immediate}, Azure drains the node, "
                "Meta does not count it as critical"
            )
        if self.azure_drains and self.immediate == "ignore":
            return "sources disagree: NVIDIA says ignore, Azure drains the node"
        return ""


# fmt: off
_ROWS: tuple[tuple[int, str, str, str, FaultClass | None, Weight, str], ...] = (
    (8, "GPU stopped processing", "user/driver", "restart app", _F.USER_CODE, _W.HINTS, ""),
    (11, "Invalid or corrupted push buffer stream", "user/driver", "restart app", _F.USER_CODE, _W.HINTS, ""),
    (13, "Graphics Engine Exception", "user app (HW if it follows one SM)", "restart app", _F.USER_CODE, _W.HINTS, "N"),
    (25, "Invalid or illegal push buffer stream", "user/driver", "restart app", _F.USER_CODE, _W.HINTS, ""),
    (31, "GPU memory page fault", "user app (bad pointer); rarely HW/driver", "restart app", _F.USER_CODE, _W.HINTS, "N"),
    (32, "Invalid or corrupted push buffer stream", "user/driver; PCIe quality", "restart app", _F.USER_CODE, _W.HINTS, ""),
    (37, "Driver firmware error", "driver firmware", "ignore", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (38, "Driver firmware error", "driver firmware", "ignore", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (43, "GPU stopped processing", "user app", "ignore", _F.USER_CODE, _W.CONTEXT, "N"),
    (44, "Graphics Engine fault during context switch", "user/driver", "ignore", _F.USER_CODE, _W.HINTS, ""),
    (45, "Preemptive cleanup, due to previous errors", "collateral of another Xid or kill", "WORKFLOW_XID_45", None, _W.CONTEXT, "N"),
    (46, "GPU stopped processing", "HW/driver", "reset GPU", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (48, "Double Bit ECC Error", "HW memory (DBE)", "WORKFLOW_XID_48", _F.GPU_MEMORY_ECC, _W.CONVICTS, "D"),
    (54, "Auxiliary power is not connected to the GPU board", "power cabling", "check cabling", _F.THERMAL_POWER, _W.CONVICTS, ""),
    (60, "Video processor exception", "driver/HW", "restart app", _F.USER_CODE, _W.HINTS, ""),
    (62, "Internal micro-controller halt (newer drivers)", "HW/firmware (PMU)", "reset GPU", _F.DRIVER_FIRMWARE, _W.CONVICTS, "D"),
    (63, "GPU memory remapping event", "HW memory (handled)", "ignore", _F.GPU_MEMORY_ECC, _W.HINTS, "DN"),
    (64, "GPU memory remapping failure", "HW memory", "reset GPU", _F.GPU_MEMORY_ECC, _W.CONVICTS, "D"),
    (66, "Illegal access by driver", "driver", "ignore", _F.USER_CODE, _W.HINTS, ""),
    (67, "Illegal access by driver", "driver", "ignore", _F.USER_CODE, _W.HINTS, ""),
    (69, "Graphics Engine class error", "user/driver", "restart app", _F.USER_CODE, _W.HINTS, "D"),
    (74, "NVLINK Error", "NVLink", "WORKFLOW_NVLINK_ERR", _F.NVLINK, _W.CONVICTS, "D"),
    (78, "vGPU Start Error", "vGPU config", "update SW/FW", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (79, "GPU has fallen off the bus", "PCIe/power/thermal/HW: GPU lost", "reboot node", _F.GPU_LOST, _W.CONVICTS, "D"),
    (80, "Corrupted data sent to GPU", "PCIe/HW data corruption", "restart app", _F.PCIE, _W.HINTS, "D"),
    (92, "High single-bit ECC error rate", "HW memory (SBE rate)", "ignore", _F.GPU_MEMORY_ECC, _W.HINTS, "DN"),
    (93, "Non-fatal violation of provisioned InfoROM wear limit", "HW infoROM wear", "ignore", _F.DRIVER_FIRMWARE, _W.CONTEXT, ""),
    (94, "Contained memory error", "HW memory, contained", "restart app", _F.GPU_MEMORY_ECC, _W.CONVICTS, ""),
    (95, "Uncontained memory error", "HW memory, uncontained", "reset GPU", _F.GPU_MEMORY_ECC, _W.CONVICTS, ""),
    (109, "Context Switch Timeout Error", "driver/app/HW", "reset GPU", _F.DRIVER_FIRMWARE, _W.HINTS, "N"),
    (110, "Security Fault Error", "security/HW", "reset GPU", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (119, "GSP RPC Timeout", "driver firmware (GSP)", "reset GPU", _F.DRIVER_FIRMWARE, _W.CONVICTS, "D"),
    (120, "GSP Error", "driver firmware (GSP)", "reset GPU", _F.DRIVER_FIRMWARE, _W.CONVICTS, "D"),
    (121, "C2C Error", "C2C link (Grace)", "ignore", _F.NVLINK, _W.HINTS, ""),
    (136, "Link Training Failed", "NVLink training", "reset GPU", _F.NVLINK, _W.CONVICTS, ""),
    (137, "NVLink Privilege Error", "NVLink (remote fault / bad peer access)", "ignore", _F.NVLINK, _W.HINTS, ""),
    (140, "ECC Unrecovered Error", "HW memory", "reset GPU", _F.GPU_MEMORY_ECC, _W.CONVICTS, ""),
    (141, "CUDA Fast Path Error", "driver", "ignore", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (143, "GPU Initialization Error", "HW/driver init", "reset GPU", _F.DRIVER_FIRMWARE, _W.CONVICTS, ""),
    (144, "NVLINK: SAW Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (145, "NVLINK: RLW Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (146, "NVLINK: TLW Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (147, "NVLINK: TREX Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (148, "NVLINK: NVLPW_CTRL Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (149, "NVLINK: NETIR Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (150, "NVLINK: MSE Error", "NVLink5", "WORKFLOW_NVLINK5_ERR", _F.NVLINK, _W.HINTS, ""),
    (154, "GPU Recovery Action Changed", "informational: see recovery action", "XID_154", None, _W.CONTEXT, ""),
    (155, "NVLINK: SW Defined Error", "NVLink (SW-defined)", "reset GPU", _F.NVLINK, _W.HINTS, ""),
    (156, "Resource Retirement Event", "resource retirement", "reset GPU", _F.GPU_MEMORY_ECC, _W.HINTS, ""),
    (157, "Resource Retirement Failure", "resource retirement failure", "ignore", _F.GPU_MEMORY_ECC, _W.CONVICTS, ""),
    (158, "GPU Fatal Timeout", "HW/driver fatal timeout", "reset GPU", _F.DRIVER_FIRMWARE, _W.CONVICTS, ""),
    (159, "CHI Non-Data Error", "CHI (Grace)", "CHECK_UVM", _F.DRIVER_FIRMWARE, _W.HINTS, ""),
    (167, "PCIE_FATAL_TIMEOUT", "PCIe fatal timeout", "(none listed)", _F.PCIE, _W.CONVICTS, ""),
    (168, "Errors found in WPR (write protected region)", "WPR / firmware", "(none listed)", _F.DRIVER_FIRMWARE, _W.CONVICTS, ""),
    (169, "Internal micro-controller halt", "HW/firmware halt", "(none listed)", _F.DRIVER_FIRMWARE, _W.CONVICTS, ""),
    (171, "Further detail of an Xid 48", "HW memory detail of 48", "(none listed)", _F.GPU_MEMORY_ECC, _W.HINTS, ""),
    (172, "Further detail of an Xid 48", "HW memory detail of 48", "(none listed)", _F.GPU_MEMORY_ECC, _W.HINTS, ""),
)
# fmt: on

_ENGINE = (
    *range(39, 42), 68, *range(70, 73), *range(75, 78), *range(82, 87), 88, 89, *range(96, 106),
    *range(126, 136), 139,
)  # fmt: skip
_IGNORE_ONLY = (106, 107, 152, 153, 160, 161)
_NO_ACTION_LISTED = (162, 163, 164, 165, 166, 170)


def _table() -> dict[int, Xid]:
    table = {row[0]: Xid(*row[:6], "D" in row[6], "N" in row[6]) for row in _ROWS}
    for code in _ENGINE:
        table[code] = Xid(
            code, "Engine exception", "user code first; hardware if it repeats across jobs",
            "restart app", _F.USER_CODE, _W.HINTS,
        )  # fmt: skip
    for code in _IGNORE_ONLY:
        table[code] = Xid(code, "Informational", "none", "ignore", None, _W.CONTEXT)
    for code in _NO_ACTION_LISTED:
        table[code] = Xid(
            code, "No action listed by NVIDIA yet", "unknown", "(none listed)",
            _F.DRIVER_FIRMWARE, _W.HINTS,
        )  # fmt: skip
    return table


XIDS: Mapping[int, Xid] = _table()


def find_xid(code: int) -> Xid:
    """The row of a number; a number that is not in the table is suspect, never harmless."""
    return XIDS.get(code) or Xid(
        code,
        "not in NVIDIA's catalogue of 2025-10-29",
        "unknown",
        "(none listed)",
        _F.DRIVER_FIRMWARE,
        _W.HINTS,
    )


RECOVERY_ACTIONS: Mapping[int, str] = {
    0: "none",
    1: "reset the GPU",
    2: "reboot the node",
    3: "drain peer-to-peer",
    4: "drain and reset",
}
"""What `GPU recovery action changed` means by number (NVML_GPU_RECOVERY_ACTION_*)."""
