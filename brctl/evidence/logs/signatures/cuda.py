"""CUDA runtime, cuBLAS, cuDNN and allocator errors as a training process prints them."""

# ruff: noqa: E501 - a pattern is read whole

from brctl.evidence.logs.signature import Part, Signature, root
from brctl.model.fault import FaultClass, Origin

_CUDA = "CUDA runtime API, error codes"
_TORCH = "PyTorch error texts"

SIGNATURES: tuple[Signature, ...] = (
    root(FaultClass.GPU_OOM, "cuda.out-of-memory",
         ("cuda out of memory", "cuda_error_out_of_memory", "cudaerrormemoryallocation",
          "outofmemoryerror", "resource_exhausted: out of memory", "hip out of memory",
          "cublas_status_alloc_failed", "cudnn_status_alloc_failed",
          "failed to allocate memory on gpu", "cuda error: out of memory", "out of memory trying to allocate",
          "cuda failure 2 'out of memory'", "cuda failure 'out of memory'",
          "kv cache", "cudamalloc"), 0.92, _TORCH,
         r"(?<!_batch_size: )(?:CUDA|HIP)(?: error:| failure \d* ?'| ) ?out of memory(?!.*(?:decreasing batch|\btrying \d|will be retrained))|CUDA_ERROR_OUT_OF_MEMORY|"
         r"cudaErrorMemoryAllocation|(?:torch\.|cuda\.)\w*OutOfMemoryError(?! caught)|^\W*OutOfMemoryError|RESOURCE_EXHAUSTED: Out of memory(?!.{0,80}in host memory)|"
         r"STATUS_ALLOC_FAILED|failed to allocate memory on GPU|Out of memory (?:trying to allocate|allocating)(?!.{0,80}in host memory)|"
         r"cudaMalloc.{0,60}out of memory|No available memory for the cache blocks|KV cache.{0,80}larger than"),
    root(FaultClass.CPU_OOM, "xla.host-memory", "in host memory", 0.88, "XLA: pinned memory of the host", r"RESOURCE_EXHAUSTED: .{0,120}\bin host memory"),
    root(FaultClass.USER_CODE, "cuda.device-assert",
         ("device-side assert", "cudaerrorassert"), 0.88, _CUDA,
         # Every CUDA error ends with "compile with TORCH_USE_CUDA_DSA to enable device-side assertions".
         r"device-side assert(?!ions)|cudaErrorAssert"),
    root(FaultClass.USER_CODE, "cuda.kernel-assertion", ("assertion `", "assertion"), 0.9, _TORCH,
         r"(?:block: \[|\.cu[h:]?.{0,80}).*Assertion.*failed|"
         r"Assertion `[^`']*(?:n_classes|index|srcIndex|target_val|num_classes|idx|t >= 0)"),
    root(FaultClass.USER_CODE, "cuda.illegal-access",
         ("illegal memory access", "misaligned address", "illegal instruction", "invalid program counter",
          "invalid address space", "warp illegal", "out-of-range address", "cudaerrorillegaladdress",
          "cudaerrormisalignedaddress", "cuda_error_illegal_address", "hardware stack error",
          "invalid __global__ read", "invalid __global__ write", "an illegal"), 0.72, _CUDA,
         r"illegal memory access|misaligned address|illegal instruction was|invalid program counter|"
         r"invalid address space|warp illegal|cudaError(?:IllegalAddress|MisalignedAddress|IllegalInstruction)|"
         r"CUDA_ERROR_(?:ILLEGAL_ADDRESS|MISALIGNED_ADDRESS)|hardware stack error|Invalid __global__ (?:read|write)",
         origin=Origin.USER),
    root(FaultClass.USER_CODE, "cuda.invalid-use",
         ("cuda error: invalid", "cublas_status_invalid_value", "cublas_status_execution_failed",
          "cudnn_status_bad_param", "cudnn_status_not_supported", "invalid configuration argument",
          "invalid argument", "cudnn_status_execution_failed", "cublas_status_not_supported",
          "too many resources requested", "invalid resource handle"), 0.6, _CUDA,
         r"CUDA error: (?:invalid (?:argument|configuration|resource handle|value)|too many resources)|"
         r"CU(?:BLAS|DNN)_STATUS_(?:INVALID_VALUE|BAD_PARAM|NOT_SUPPORTED)"),
    root(FaultClass.UNKNOWN, "cuda.unspecified",
         ("unspecified launch failure", "cuda error: unknown error", "cudaerrorlaunchfailure",
          "cuda_error_launch_failed", "launch timed out", "cudaerrorlaunchtimeout",
          "unknown error", "cublas_status_internal_error", "cudnn_status_internal_error",
          "cublas_status_not_initialized", "cudnn_status_not_initialized"), 0.5, _CUDA,
         r"unspecified launch failure|CUDA (?:runtime )?error:? (?:\(?\d+\)?:? )?unknown error|cudaErrorLaunch(?:Failure|Timeout)|"
         r"CUDA_ERROR_LAUNCH_(?:FAILED|TIMEOUT)|launch timed out and was terminated|"
         r"STATUS_(?:INTERNAL_ERROR|NOT_INITIALIZED)"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cuda.device-gone",
         ("cudaerrordevicesunavailable", "device is busy or unavailable", "devices are busy or unavailable",
          "cuda_error_device_unavailable", "device(s) is/are busy"), 0.55, _CUDA,
         r"cudaErrorDevicesUnavailable|(?:device\(?s?\)? (?:is|are|is/are) )busy or unavailable|DEVICE_UNAVAILABLE", origin=Origin.UNKNOWN),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cuda.no-device",
         ("no cuda-capable device", "no cuda gpus are available", "no devices were found",
          "found no nvidia driver", "invalid device ordinal", "cuda_error_no_device",
          "torch not compiled with cuda", "cuda is not available", "no nvidia driver",
          "cudaerrornodevice", "cudaerrorinvaliddevice", "cuda unknown error - this may be due to",
          "could not select device driver", "no gpu found", "nvidia-container-cli",
          "no gpus found", "0 active drivers", "failed call to cuinit"), 0.84, _CUDA,
         r"no CUDA-capable device|No CUDA GPUs are available|\w\W{1,3}No devices were found|Found no NVIDIA driver|"
         r"invalid device ordinal|CUDA_ERROR_NO_DEVICE|not compiled with CUDA|cudaError(?:NoDevice|InvalidDevice)|"
         r"CUDA unknown error - this may be due to|could not select device driver|no NVIDIA driver|0 active drivers|"
         r"nvidia-container-cli: (?:initialization error|.*error)|(?:CUDA is not available|No GPUs? found).{0,40}(?:!|$|\.)|"
         r"failed call to cuInit"),
    root(FaultClass.ENVIRONMENT_MISMATCH, "cuda.version",
         ("no kernel image", "driver version is insufficient", "nvidia driver on your system is too old",
          "provided ptx was compiled", "cuda version mismatch", "mismatches the version that was used to compile",
          "is not compatible with the current pytorch", "forward compatibility was attempted",
          "compiled with a different cuda version", "cuda_home environment variable is not set",
          "unsupported gpu architecture", "cudaerrorinsufficientdriver", "requires cuda",
          "flash attention only supports ampere", "flashattention only supports"), 0.9, _CUDA,
         r"no kernel image|driver version is insufficient|driver on your system is too old|PTX was compiled|"
         r"CUDA version mismatch|mismatches the version that was used to compile|not compatible with the current PyTorch|"
         r"forward compatibility was attempted|different CUDA version|CUDA_HOME environment variable is not set|"
         r"unsupported gpu architecture|cudaErrorInsufficientDriver|requires CUDA (?:version )?\d|"
         r"FlashAttention only supports|Flash attention only supports"),
    root(FaultClass.UNKNOWN, "native.segfault",
         ("segmentation fault", "sigsegv", "double free", "free(): invalid", "corrupted size",
          "malloc(): ", "stack smashing", "munmap_chunk", "heap corruption"), 0.45, "glibc and shell texts",
         r"Segmentation fault|double free|free\(\): invalid|corrupted (?:size|double)|malloc\(\): |stack smashing|"
         r"munmap_chunk", part=Part.GENERIC),
)  # fmt: skip
