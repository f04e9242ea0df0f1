"""AMD GPUs, and what tools of any vendor say about an accelerator.

Source: drivers/gpu/drm/amd of Linux 5.x to 6.x, ROCm and RCCL texts, rocm-smi; DCGM and nvidia-smi for
what the NVIDIA driver's own table lacks.
"""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, aside, root
from brctl.model.fault import FaultClass, Origin

_AMD = "amdgpu and amdkfd driver texts"
_ROCM = "ROCm, HIP and RCCL texts"
_DCGM = "DCGM, nvidia-smi and NVML texts"

_AMD_ROWS = (
    root(FaultClass.GPU_MEMORY_ECC, "amd.memory", ("uncorrectable", "ras", "bad page", "umc", "ecc"), 0.9, _AMD,
         r"amdgpu(?!.*\bxgmi_wafl\b).{0,120}(?:[1-9]\d* (?:new )?uncorrectable (?:hardware )?errors|(?<!No )RAS .{0,40}(?:poison|bad page)|bad page.{0,40}(?:threshold|exceed|reserv)|[Uu]ncorrectable (?:hardware )?error)|ROCM? .{0,40}uncorrectable ECC", physical=True),
    root(FaultClass.GPU_LOST, "amd.lost", ("lost from bus", "fallen off", "bar is not", "device lost", "reset failed", "gpu reset(", "wedged", "hw_fini", "asic hang", "device was lost"), 0.84, _AMD,
         r"amdgpu.{0,100}(?:lost from bus|fell off|device (?:was |is )?lost|GPU is (?:lost|wedged)|no longer accessible|reset end with ret = -\d+|GPU reset(?:\(\d+\))? failed|ASIC reset failed|recovery failed)|device wedged, but no recovery", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "amd.firmware", ("psp", "smu", "firmware", "hw_init", "ip block", "amdgpu_device", "fatal error during gpu init", "kfd", "vbios", "mes ", "ring ", "qcm fence", "unrecoverable state", "queue"), 0.84, _AMD,
         r"amdgpu.{0,60}(?:qcm fence wait loop timeout|(?:cp|MES) might be in (?:an )?unrecoverable state|HIQ .{0,40}(?:preempt|timeout)|queue preemption failed|[Ff]ailed to (?:evict|remove|unmap) .{0,24}queue)|amdgpu.{0,120}(?:(?:psp|smu|rlc|mes|sdma|vcn).{0,40}(?:fail|timed? ?out|error|hang)|hw_init of IP block <\w+> failed|Fatal error during GPU init|[Ff]ailed to load (?:ucode|firmware|ip discovery)|amdgpu_device_ip_(?:init|resume|suspend) failed|Unable to locate a BIOS ROM|[Ff]ailed to (?:initialize|resume|disable gfxoff|export SMU))", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "amd.ring-timeout", ("timeout", "timedout", "gpu reset begin", "unrecoverable state", "queue preemption", "ring "), 0.78, _AMD,
         r"\*ERROR\* ring \S+ timeout|amdgpu_job_timedout|amdgpu: GPU reset begin", physical=True, origin=Origin.UNKNOWN),
    root(FaultClass.DRIVER_FIRMWARE, "drm.hang", ("gpu hang", "resetting chip", "resetting rcs", "engine reset", "hangcheck", "ring test", "test failed", "gpu lockup", "guc", "fences timed out", "not done with your previous command"), 0.74, "i915, xe, radeon, nouveau and amdgpu texts",
         r"GPU HANG: ecode|[Rr]esetting (?:chip|\w+\d) for (?:hang|stopped heartbeat|preemption)|engine reset failed|ring \S+ test failed|GPU lockup|(?:\*ERROR\*|\bi915\b|\bxe\b).{0,60}\b(?:GuC|HuC)\b:? .{0,40}(?:fail|timed? ?out|dead)|fences timed out|not done with your previous command|\bfifo: .{0,40}(?:TIMEOUT|SCHED_ERROR)", physical=True),
    root(FaultClass.USER_CODE, "amd.page-fault", ("page fault", "memory access fault", "illegal register access", "queue error", "hsa_status_error"), 0.7, _AMD,
         r"\[(?:gfxhub|mmhub)\d?\] (?:no-retry )?page fault|Memory access fault by GPU|HSA_STATUS_ERROR_(?:MEMORY_APERTURE_VIOLATION|MEMORY_FAULT|EXCEPTION|ILLEGAL_INSTRUCTION|INVALID_PACKET)", origin=Origin.USER, physical=True),
    root(FaultClass.NVLINK, "amd.xgmi", ("xgmi",), 0.86, _AMD, r"xgmi(?!.*NO_ERRORS).{0,80}(?:error|fail|link .{0,20}down|wafl)", physical=True),
    root(FaultClass.THERMAL_POWER, "amd.hot", ("temperature fault", "ctf", "thermal"), 0.88, _AMD, r"amdgpu.{0,80}(?:[Tt]emperature [Ff]ault|\bCTF\b|thermal (?:fault|trip|shutdown)|over-?temperature)", physical=True),
    aside(Part.VICTIM, "amd.context-lost", ("failed to initialize parser", "cs has been rejected", "context isn't robust", "vram is lost"), _AMD,
          r"Failed to initialize parser -\d+|CS has been rejected|VRAM is lost|context isn't robust"),
    root(FaultClass.GPU_OOM, "amd.out-of-memory", ("hip out of memory", "hiperroroutofmemory"), 0.92, _ROCM, r"HIP out of memory|hipErrorOutOfMemory"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "amd.no-device", ("no hip gpus", "hiperrornodevice", "rocminfo", "hsa_init", "invalid device function", "hiperrornobinaryforgpu"), 0.84, _ROCM,
         r"No HIP GPUs are available|hipErrorNoDevice|hipErrorNoBinaryForGpu|HIP error: invalid device function|hsa_init.{0,30}fail"),
    root(FaultClass.DRIVER_FIRMWARE, "amd.not-loaded", "rock module is not loaded", 0.78, _ROCM),
)  # fmt: skip

_ANY_CARD = (
    root(FaultClass.GPU_LOST, "card.cannot-be-reset", ("is unresponsive", "not responding", "not respond"), 0.86, "tools of any vendor: a card that neither answers nor can be reset",
         r"\b(?:GPU|NPU|HPU|TPU|DPU|[Aa]ccel(?:erator)?\w*|[Dd]evice|[Cc]hip)\b.{0,40}\b(?:is unresponsive|(?:is|does) not respond(?:ing)?)\b.{0,40}\b(?:cannot|can't|could not|failed to|unable to) (?:be )?reset\b", physical=True),
)  # fmt: skip

_NVIDIA = (
    root(FaultClass.THERMAL_POWER, "gpu.clocks-held", ("hw slowdown", "hw thermal", "hw power brake", "thermal slowdown", "power brake", "slowdown : active"), 0.86, _DCGM,
         r"(?:HW (?:Thermal )?Slowdown|HW Power Brake(?: Slowdown)?|SW Thermal Slowdown|[Pp]ower [Bb]rake)\s*[:|]\s*Active\b", physical=True),
    root(FaultClass.GPU_SLOW, "gpu.clock-low", ("clock", "below", "slower"), 0.6, _DCGM,
         r"GPU ?\d* .{0,40}(?:clocks?|throughput|FLOPS|bandwidth) .{0,30}(?:below|lower than|under|slower)", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "gpu.firmware-missing", ("no firmware image", "rmfetchgsprmimages", "failed to load firmware", "gsp firmware", "rminitadapter", "rm_init_adapter", "nvidia: probe of", "nvidia: probe with", "nvidia_uvm", "modprobe", "probe routine", "none of the nvidia", "version magic"), 0.84, "NVIDIA kernel driver texts",
         r"RmFetchGspRmImages|GSP firmware.{0,60}(?:fail|missing|not found|mismatch)|NVRM: .{0,60}(?:RmInitAdapter failed|rm_init_adapter failed|[Ff]ailed to (?:load|initialize|allocate) .{0,40}(?:firmware|GSP|adapter))|nvidia: probe .{0,40}failed with error|modprobe: .{0,40}(?:could not insert|FATAL).{0,40}nvidia|NVRM: The NVIDIA (?:GPU driver|probe routine) (?:failed|was not called)|None of the NVIDIA devices were initialized|nvidia: version magic", physical=True),
    root(FaultClass.DRIVER_FIRMWARE, "gpu.nvml", ("nvml", "nvidia-smi has failed", "driver not loaded"), 0.74, _DCGM,
         r"nvml(?:Init| error|Error)?.{0,60}(?:[Dd]river [Nn]ot [Ll]oaded|Unknown Error|driver not loaded)|NVIDIA-SMI has failed|Failed to initialize NVML: (?:Unknown|Driver Not)"),
    root(FaultClass.GPU_MEMORY_ECC, "gpu.row-remap", ("row remap", "remapped rows", "remapping", "retired pages", "page retirement"), 0.84, _DCGM,
         r"(?:[Rr]ow [Rr]emapp?\w*|[Rr]emapped [Rr]ows?|[Rr]emapping(?= (?:failure|pending|has failed))).{0,40}(?:[Ff]ailure occurred\s*[:|]\s*Yes|pending\s*[:|]\s*Yes|failed(?! false)|has failed)", physical=True),
)  # fmt: skip

SIGNATURES = (*_AMD_ROWS, *_ANY_CARD, *_NVIDIA)
