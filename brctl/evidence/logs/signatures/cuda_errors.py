"""The CUDA, HIP and library status codes, as data: every spelling of one code leads to one class.

Source: cuda_runtime_api.h, cuda.h and hip_runtime_api.h (names, numbers and texts of cudaError_t,
CUresult, hipError_t) and the status enumerations of cuBLAS, cuDNN, cuSPARSE, cuSOLVER, cuFFT, NVRTC.
"""

# ruff: noqa: E501 - a table is read by its columns

from brctl.evidence.logs.signature import Signature, root
from brctl.model.fault import FaultClass as F
from brctl.model.fault import Origin

_CODES = "CUDA runtime and driver API, error codes"
_STATUS = "status codes of the CUDA libraries"
_SAYS = r"\b(?:cuda|hip)\w* (?:driver |runtime )?(?:error|failure)\W{1,3}"
_CALL = (
    r"\b(?:cu(?:da)?|hip)[A-Z]?\w*\W{0,3}[^'\"\n]{0,40}(?:error|failure|failed|returned)\W.{0,24}?"
)

_TABLE: tuple[tuple[str, F, float, Origin | None, str, str, str], ...] = (
    # name, class, strength, side, names without cudaError, texts, numbers
    ("cuda.code.memory", F.GPU_OOM, 0.9, None, "MemoryAllocation|OutOfMemory", "out of memory", "2"),
    ("cuda.code.ecc", F.GPU_MEMORY_ECC, 0.93, None, "ECCUncorrectable|ECC_UNCORRECTABLE", "uncorrectable ECC error", "214"),
    ("cuda.code.nvlink", F.NVLINK, 0.92, None, "NvlinkUncorrectable|NVLINK_UNCORRECTABLE|Contained|CONTAINED", "uncorrectable NVLink error|Invalid access of peer GPU memory over nvlink", "220|721"),
    ("cuda.code.not-ready", F.DRIVER_FIRMWARE, 0.88, None, "SystemNotReady|SYSTEM_NOT_READY", "system not yet initialized", "802"),
    ("cuda.code.driver", F.ENVIRONMENT_MISMATCH, 0.86, None,
     "InsufficientDriver|CallRequiresNewerDriver|SystemDriverMismatch|CompatNotSupportedOnDevice|StubLibrary|SharedObjectInitFailed|SharedObjectSymbolNotFound|SYSTEM_DRIVER_MISMATCH|COMPAT_NOT_SUPPORTED_ON_DEVICE|STUB_LIBRARY|SHARED_OBJECT_INIT_FAILED|SHARED_OBJECT_SYMBOL_NOT_FOUND",
     "driver version is insufficient|requires a newer driver|unsupported display driver|forward compatibility was attempted|CUDA driver is a stub library|shared object (?:initialization failed|symbol not found)", "34|35|36|302|303|803|804"),
    ("cuda.code.binary", F.ENVIRONMENT_MISMATCH, 0.88, None,
     "NoKernelImageForDevice|InvalidKernelImage|InvalidPtx|UnsupportedPtxVersion|JitCompilerNotFound|JitCompilationDisabled|InvalidDeviceFunction|SymbolNotFound|NO_BINARY_FOR_GPU|INVALID_IMAGE|INVALID_PTX|UNSUPPORTED_PTX_VERSION|JIT_COMPILER_NOT_FOUND|NoBinaryForGpu|InvalidDeviceFunction",
     "no kernel image is available|device kernel image is invalid|PTX JIT compil|unsupported toolchain|invalid device function|named symbol not found", "98|200|209|218|221|222|223"),
    ("cuda.code.no-device", F.ENVIRONMENT_MISMATCH, 0.82, None, "NoDevice|InvalidDevice|DeviceNotLicensed|NO_DEVICE|INVALID_DEVICE|DEVICE_NOT_LICENSED",
     "no CUDA-capable device is detected|invalid device ordinal|no ROCm-capable device", "100|101|102"),
    ("cuda.code.mps", F.ENVIRONMENT_MISMATCH, 0.78, Origin.INFRA, r"Mps(?!ClientTerminated)\w+|MPS_(?!CLIENT_TERMINATED)\w+", r"MPS (?:client|server) (?:failed|is not ready)", "805|806|807|808|809|810"),
    ("cuda.code.busy", F.ENVIRONMENT_MISMATCH, 0.55, Origin.UNKNOWN, "DevicesUnavailable|DEVICE_UNAVAILABLE|InitializationError|NOT_INITIALIZED|OperatingSystem|OPERATING_SYSTEM|NotPermitted|NOT_PERMITTED",
     "busy or unavailable|initialization error|OS call failed or operation not supported on this OS|operation not permitted", "3|46|304|800"),
    ("cuda.code.address", F.USER_CODE, 0.74, Origin.USER, "IllegalAddress|MisalignedAddress|InvalidAddressSpace|InvalidPc|IllegalInstruction|HardwareStackError|ILLEGAL_ADDRESS|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|ILLEGAL_INSTRUCTION|HARDWARE_STACK_ERROR",
     "illegal memory access|misaligned address|illegal instruction|invalid program counter|operation not supported on global/shared address space|hardware stack error", "700|714|715|716|717|718"),
    ("cuda.code.assert", F.USER_CODE, 0.88, None, "Assert|ASSERT", "device-side assert(?!ions)", "710"),
    ("cuda.code.use", F.USER_CODE, 0.72, None,
     r"InvalidValue|InvalidConfiguration|InvalidDevicePointer|InvalidMemcpyDirection|InvalidResource\w+|LaunchOutOfResources|StreamCapture\w+|GraphExecUpdateFailure|HostMemory(?:Already|Not)Registered|PeerAccess(?:Already|Not)Enabled|CooperativeLaunchTooLarge|ContextIsDestroyed|MissingConfiguration|InvalidSymbol|InvalidClusterSize|LaunchMaxDepthExceeded|INVALID_VALUE|INVALID_HANDLE|INVALID_CONTEXT|LAUNCH_OUT_OF_RESOURCES|STREAM_CAPTURE_\w+|HOST_MEMORY_\w+|PEER_ACCESS_(?:ALREADY|NOT)_ENABLED|CONTEXT_IS_DESTROYED|GRAPH_EXEC_UPDATE_FAILURE",
     r"invalid (?:argument|configuration argument|device pointer|resource handle|copy direction|device symbol)|too many resources requested|operation (?:not permitted|failed due to a previous error|would).{0,40}captur|capture was not ended|context is destroyed|(?:already|not) (?:been )?(?:mapped|registered|enabled)|too many blocks in cooperative launch", "1|9|13|17|21|400|701|704|712|713|720|9\\d\\d(?<!999)"),
)  # fmt: skip

_SPELT = ("cudaerror", "cuda_error_", "hiperror", "hip_error_", "cuda failure", "cuda error", "hip error", "cuda driver error", "cuda runtime error", "error code", "cudagetlasterror", "cuda failed")  # fmt: skip


def _row(
    name: str, fault: F, strength: float, side: Origin | None, names: str, texts: str, numbers: str
) -> Signature:
    pattern = (
        rf"\b(?:(?:cuda|hip)_?error_?)(?:{names})\b|{_SAYS}(?:(?:{numbers})\b(?![.\d])|.{{0,24}}?(?:{texts}))|"
        rf"{_CALL}(?:{texts})"
    )
    return root(fault, name, _SPELT, strength, _CODES, pattern, origin=side)


_LIBRARIES = (
    root(F.GPU_OOM, "cuda.status.memory", ("status_alloc_failed", "status_not_initialized", "cufft_alloc_failed", "insufficient_workspace", "rccl_status", "rocblas_status_memory"), 0.8, _STATUS,
         r"(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|MIOPEN)_(?:STATUS_)?(?:ALLOC_FAILED|NOT_INITIALIZED|STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)|rocblas_status_memory_error"),
    root(F.ENVIRONMENT_MISMATCH, "cuda.status.versions", ("arch_mismatch", "version_mismatch", "runtime_prerequisite_missing", "sublibrary", "nvrtc_error", "not_supported_arch", "libraries_version", "cudnn version incompatibility", "cudnn library", "nvrtc: error"), 0.84, _STATUS,
         r"_STATUS_(?:ARCH_MISMATCH|\w*VERSION_MISMATCH|RUNTIME_PREREQUISITE_MISSING|SUBLIBRARY_LOADING_FAILED|NOT_SUPPORTED_ARCH_MISMATCH)|NVRTC_ERROR_(?:BUILTIN_OPERATION_FAILURE|INVALID_OPTION)|nvrtc: error: (?:failed to open|invalid value for --gpu-arch)|cuDNN version incompatibility|[Ll]oaded runtime CuDNN library: \S+ but source was compiled with"),
    root(F.USER_CODE, "cuda.status.use", ("status_invalid_value", "status_bad_param", "status_not_supported", "status_mapping_error", "matrix_type_not_supported", "zero_pivot", "cufft_invalid", "nvrtc_error_compilation", "unsupported_datatype"), 0.72, _STATUS,
         r"(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS|MIOPEN)_STATUS_(?:INVALID_VALUE|BAD_PARAM\w*|NOT_SUPPORTED\w*|MATRIX_TYPE_NOT_SUPPORTED|ZERO_PIVOT)|CUFFT_INVALID_\w+|NVRTC_ERROR_COMPILATION"),
    root(F.UNKNOWN, "cuda.status.failed", ("status_execution_failed", "status_internal_error", "status_mapping_error", "cufft_exec_failed", "cufft_internal", "status_license"), 0.5, _STATUS,
         r"_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)|CUFFT_(?:EXEC_FAILED|INTERNAL_ERROR)"),
    root(F.USER_CODE, "nvshmem.heap", ("nvshmem_symmetric_size", "symmetric heap"), 0.7, "NVSHMEM texts", r"NVSHMEM.{0,80}(?:symmetric heap|nvshmem_malloc).{0,60}(?:exhausted|failed|full)"),
    root(F.NCCL_CONFIG, "nvshmem.start", "nvshmem", 0.64, "NVSHMEM texts: bootstrap and transports", r"nvshmem\w*.{0,80}(?:init failed for transport|non-zero status|bootstrap\w* (?:\w+ )?failed)", origin=Origin.UNKNOWN),
)  # fmt: skip

SIGNATURES: tuple[Signature, ...] = (*(_row(*row) for row in _TABLE), *_LIBRARIES)
