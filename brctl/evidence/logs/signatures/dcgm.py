"""DCGM as it speaks: error codes, the sentences behind them, diagnostics and passive watches.

Source: dcgm_errors.h of NVIDIA/DCGM 3.x to 4.x (codes 3 to 111 with their message formats), dcgmi diag and
dcgmi health; words of burn-in tools that compare results.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, aside, root
from brctl.model.fault import FaultClass

_CODES = "DCGM error codes"
_TEXTS = "DCGM error texts, dcgm_errors.h"
_DIAG = "dcgmi diag output"
_GPU = r"(?:GPU (?P<gpu>\d{1,3})\b.{0,80}?)?"

_ERRORS = (
    root(FaultClass.GPU_MEMORY_ECC, "dcgm.code-memory", "dcgm_fr_", 0.9, _CODES,
         r"DCGM_FR_\w*(?:DBE|SBE|ROW_REMAP|RETIRE|UNCORRECTABLE|UNCONTAINED|FAULTY_MEMORY|MEMORY_MISMATCH|SRAM|ECC_(?!DISABLED|UNSUPPORTED))", physical=True),
    root(FaultClass.NVLINK, "dcgm.code-nvlink", "dcgm_fr_", 0.88, _CODES, r"DCGM_FR_\w*(?:NVLINK|NVSWITCH|SXID|FABRIC_PROBE)", physical=True),
    root(FaultClass.PCIE, "dcgm.code-pcie", "dcgm_fr_", 0.85, _CODES, r"DCGM_FR_\w*(?:PCI|LOW_BANDWIDTH)", physical=True),
    root(FaultClass.THERMAL_POWER, "dcgm.code-thermal", "dcgm_fr_", 0.86, _CODES,
         r"DCGM_FR_\w*(?:THERMAL|TEMP|CLOCK_THROTTLE_POWER|POWER_UNREADABLE|THROTTL)", physical=True),
    root(FaultClass.GPU_SLOW, "dcgm.code-slow", "dcgm_fr_", 0.72, _CODES, r"DCGM_FR_(?:STRESS_LEVEL|MEMORY_BANDWIDTH|TARGET_POWER|GFLOPS_THRESHOLD\w*|HIGH_LATENCY)", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "dcgm.code-driver", "dcgm_fr_", 0.7, _CODES, r"DCGM_FR_(?:CORRUPT_INFOROM|CUDA_FM_NOT_INITIALIZED|CUDA_CONTEXT|CUDA_DEVICE)", physical=True),
    root(FaultClass.GPU_LOST, "dcgm.device-count", ("number of devices nvml returns", "device_count_mismatch"), 0.72, _TEXTS, physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "dcgm.memory", ("retired page", "page retirement", "faulty memory", "memory mismatch was", "memory element", "uncontained error", "single-bit ecc", "double-bit ecc", "rows were remapped", "row remapping failed", "sram uncorrectable"), 0.87, _TEXTS,
         r"(?:GPU (?P<gpu>\d{1,3}) had .{0,60})?(?:pending retired page|[1-9]\d* or more retired pages|retired pages due to DBEs|[Pp]ending page retirements? together|[1-9]\d* faulty memory element|memory mismatch was detected on GPU|uncontained error|[1-9]\d* volatile double-bit|row remapping failed|[1-9]\d* rows were remapped|Fail.{0,40}SRAM uncorrectable)"
         r"(?:.{0,60}GPU (?P<gpu2>\d{1,3}))?", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "dcgm.single-bit", "single-bit ecc", 0.55, _TEXTS, r"More than \d+ single-bit ECC error.{0,30}GPU (?P<gpu>\d+)", physical=True),
    root(FaultClass.NVLINK, "dcgm.nvlink", ("nvlinks are up", "nvlink errors", "nvlink link", "nvswitch"), 0.87, _TEXTS,
         r"Only (?P<up>\d+) NvLinks are up out of the expected (?!(?P=up)\b)\d+|(?:Detected|Found)? ?[1-9][\d.]* \w* ?NvLink errors (?:on|found)(?:.{0,40}GPU (?P<gpu>\d+))?|NvLink (?:link |port )?\d+ is (?:currently )?down|fatal errors on NvSwitch|fatal NvSwitch SXID", physical=True),
    root(FaultClass.PCIE, "dcgm.pcie-texts", ("pcie replay", "pci link", "in direction"), 0.8, _TEXTS,
         r"more than \d+ PCIe replays|PCIe replay violation|GPU (?P<gpu>\d+) is running at PCI link (?:generation|width) \w+, which is below|Bandwidth of GPU (?P<gpu2>\d+) in direction .{0,40} did not exceed", physical=True),
    root(FaultClass.GPU_SLOW, "dcgm.slow", ("did not reach desired", "only achieved", "below the threshold", "exceeded maximum allowed latency"), 0.76, _TEXTS,
         r"did not reach desired (?:stress level|power minimum)(?:.{0,60}GPU (?P<gpu>\d+))?|GPU (?P<gpu2>\d+) only achieved a memory bandwidth|(?:GFLOPS?|FLOPS?)\w* for GPU (?P<gpu3>\d+) which is below the threshold", physical=True),
    root(FaultClass.SILENT_CORRUPTION, "dcgm.wrong-data", ("peer-to-peer test", "nan-value memory", "miscompare failure"), 0.74, _TEXTS,
         r"GPU (?P<gpu>\d+) (?:unsuccessfully wrote|was unsuccessfully written)|[1-9]\d* NaN-value memory elements? on GPU (?P<gpu2>\d+)|miscompare failure in the L1", physical=True),
    root(FaultClass.GPU_MEMORY_ECC, "dcgm.policy-memory", ("policy", "dcgm_policy"), 0.82, "DCGM policies", r"DCGM_POLICY_COND_(?:DBE|MAX_PAGES_RETIRED)|policy violation.{0,60}(?:double[- ]bit|retired pages)", physical=True),
    root(FaultClass.THERMAL_POWER, "dcgm.policy-thermal", ("policy", "dcgm_policy"), 0.82, "DCGM policies", r"DCGM_POLICY_COND_(?:THERMAL|POWER)|policy violation.{0,60}(?:temperature|thermal|power)", physical=True),
    root(FaultClass.NVLINK, "dcgm.policy-nvlink", ("policy", "dcgm_policy"), 0.82, "DCGM policies", r"DCGM_POLICY_COND_NVLINK|policy violation.{0,60}NVLink", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "dcgm.inforom", "corrupt inforom", 0.84, _TEXTS, r"corrupt InfoROM has been detected(?: in GPU (?P<gpu>\d+))?", physical=True),
    root(FaultClass.THERMAL_POWER, "dcgm.temperature", "exceeded user-specified", 0.86, _TEXTS, r"[Tt]emperature \d+ of GPU (?P<gpu>\d+) exceeded", physical=True),
)  # fmt: skip

_DIAGNOSTICS = (
    root(FaultClass.GPU_MEMORY_ECC, "dcgm.memory-test",
         ("gpu memory", "memory test failed", "memtest"), 0.55, _DIAG,
         r"(?:GPU Memory|memtest|memory test)\b.{0,30}\bFail", physical=True),
    aside(Part.CONTEXT, "dcgm.gpu", ("fail - gpu", "gpu "), _DIAG,
          r"Fail - GPUs?: (?P<value>[\d, ]+)|\bGPU (?P<gpu>\d+) ", sets="dcgm-gpu"),
    root(FaultClass.THERMAL_POWER, "dcgm.thermal",
         ("thermal violation", "thermal slowdown", "power violation", "power brake", "hw slowdown",
          "thermal throttl", "overheat", "temperature limit", "shutdown temperature",
          "slowdown temperature", "hw thermal", "too hot", "high temperature"), 0.86,
         "dcgmi diag; NVML clocks event reasons",
         _GPU + r"(?:thermal violation|(?:HW|hardware) (?:thermal )?slowdown\s*:?\s*(?:Active|detect|engag)|"
         r"(?:HW )?thermal (?:slowdown|throttl)\w*(?!\s*:\s*Not Active)|power (?:violation|brake)(?!\s*\w*\s*:\s*Not)|"
         r"overheat(?:ed|ing)|(?:exceed\w*|above|over|reached).{0,30}(?:shutdown|slowdown|temperature) (?:limit|threshold|temp)|"
         r"running too hot|(?<!cable error, )high temperature)(?!.{0,24}(?:Not Active|Disengaged|deassert|released|: 0\b))", physical=True),
    root(FaultClass.GPU_SLOW, "dcgm.perf",
         ("targeted stress", "targeted power", "sm stress", "gflops", "below the minimum", "below expected", "lower than expected", "less than expected", "clocks dropped",
          "clock dropped", "performance below"), 0.7, _DIAG,
         r"(?:Targeted (?:Stress|Power)|SM Stress|Diagnostic)\b.{0,20}\bFail|stress level.{0,60}below|"
         r"(?:gflops|tflops|performance|bandwidth).{0,80}(?:below|lower than|less than).{0,40}(?:minimum|expected|"
         r"threshold|baseline)", physical=True),
    root(FaultClass.PCIE, "dcgm.pcie", ("pcie", "pci-e"), 0.75, _DIAG,
         r"\bPCIe?\b.{0,20}\bFail\b|PCIe.{0,60}(?:replay|bandwidth).{0,40}(?:exceed|below|lower|less|too)",
         physical=True),
    root(FaultClass.SILENT_CORRUPTION, "sdc.words",
         ("silent data corruption", "faulty", "sdc ", "miscompare", "bit-wise mismatch", "bitwise mismatch",
          "checksum mismatch", "data corruption", "corrupted result", "wrong results",
          "computation error", "mismatch between devices", "memory errors!!"), 0.8,
         "burn-in tools and field reports of silent corruption",
         r"silent data corruption|\bSDC\b.{0,40}(?:detect|found|suspect)|miscompar\w+|bit-?wise (?:mis-?match|differ)|"
         r"(?:GPU|device|rank) ?(?P<gpu>\d+)?.{0,40}(?:wrong result|corrupted result|computation error)|"
         r"(?:errors: [1-9]\d*.*WARNING)|results? (?:differ|mismatch) (?:between|across) (?:devices|gpus|ranks)|"
         r"GPU \d+: FAULTY", physical=True),
)  # fmt: skip

_COMPARED = (
    root(FaultClass.SILENT_CORRUPTION, "sdc.compared", ("fail", "mismatch"), 0.84, "device tests that compare a result with what it has to be",
         r"\b(?:GPU|NPU|HPU|device|card|accelerator|chip)[ :#=]{0,2}(?P<gpu>\d{1,3})\b(?=.{0,160}\b(?:FAIL(?:ED)?|mismatch\w*)\b)(?=.{0,160}(?:\b0x|\b(?:checksum|digest|hash|crc|sum|result|value|element|output)))(?=.{0,160}\b(?:got|read|actual)\b).{0,160}\b(?:want|wanted|expect|expected|golden)\b", physical=True),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*_ERRORS, *_DIAGNOSTICS, *_COMPARED)
