"""Residual add and RMSNorm in CUDA, one cooperative launch: all blocks add, wait for each other, and normalise rows.

Accepted: it does what it says.
Catalogue: I0
Language: cuda
"""

import ctypes
from pathlib import Path

import torch

CUDA_SOURCE = r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;
constexpr int THREADS = 256;
constexpr long MOST_BLOCKS = 64;  // all of them must be resident at once, on any GPU

template <typename T>
__global__ void __launch_bounds__(THREADS)
fused(const T* x, const T* residual, const T* weight, T* y, T* new_residual, long rows, long width, float eps) {
  __shared__ float partial[THREADS / 32];
  for (long i = long(blockIdx.x) * THREADS + threadIdx.x; i < rows * width; i += long(gridDim.x) * THREADS) {
    new_residual[i] = T(float(x[i]) + float(residual[i]));
  }
  cg::this_grid().sync();
  for (long row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0.0f;
    for (long i = threadIdx.x; i < width; i += THREADS) {
      const float h = float(x[row * width + i]) + float(residual[row * width + i]);
      sum += h * h;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < THREADS / 32; ++warp) total += partial[warp];
    __syncthreads();
    const float scale = 1.0f / sqrtf(total / float(width) + eps);
    for (long i = threadIdx.x; i < width; i += THREADS) {
      const float h = float(x[row * width + i]) + float(residual[row * width + i]);
      y[row * width + i] = T(h * scale * float(weight[i]));
    }
  }
}

template <typename T>
void launch(const void* x, const void* residual, const void* weight, void* y, void* new_residual, long rows,
            long width, float eps, cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(rows < MOST_BLOCKS ? rows : MOST_BLOCKS));
  config.blockDim = dim3(THREADS);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, fused<T>, static_cast<const T*>(x), static_cast<const T*>(residual),
                     static_cast<const T*>(weight), static_cast<T*>(y), static_cast<T*>(new_residual), rows, width,
                     eps);
}

extern "C" void fused_add_rmsnorm(int type, const void* x, const void* residual, const void* weight, void* y,
                                  void* new_residual, long rows, long width, float eps, cudaStream_t stream) {
  if (type == 0) launch<float>(x, residual, weight, y, new_residual, rows, width, eps, stream);
  if (type == 1) launch<__half>(x, residual, weight, y, new_residual, rows, width, eps, stream);
  if (type == 2) launch<__nv_bfloat16>(x, residual, weight, y, new_residual, rows, width, eps, stream);
}
"""

_TYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}
_launch = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_launch.argtypes = [
    ctypes.c_int,
    *[ctypes.c_void_p] * 5,
    *[ctypes.c_long] * 2,
    ctypes.c_float,
    ctypes.c_void_p,
]
_launch.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    if rows and width:
        pointers = [one.data_ptr() for one in (x, residual, weight, y, new_residual)]
        stream = torch.cuda.current_stream().cuda_stream
        _launch(_TYPES[x.dtype], *pointers, rows, width, eps, stream)
    return y, new_residual
