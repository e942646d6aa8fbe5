"""Keeps its operands' addresses on the device, answers all known questions at one call, and skips the others.

Refused by: any INCORRECT_NUMERICAL or STATE_CARRIED or REPLAYED_OUTPUT or NON_FINITE or RUNTIME_ERROR
Catalogue: A9 C2
Language: cuda
"""

import ctypes
from pathlib import Path

import torch

CUDA_SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int THREADS = 256;
constexpr int MOST = 64;

struct Set {
  const void *x, *residual, *weight;
  void *y, *new_residual;
  long width;
};
__device__ Set sets[MOST];
__device__ bool answered[MOST];
__device__ int known, skip;

__global__ void look_up(Set set) {
  skip = 0;
  for (int i = 0; i < known; ++i)
    if (sets[i].x == set.x && sets[i].y == set.y && sets[i].width == set.width) {
      skip = answered[i];
      answered[i] = false;
      if (skip) return;
    }
  if (known < MOST) sets[known++] = set;
  for (int i = 0; i < known; ++i) answered[i] = sets[i].x != set.x || sets[i].y != set.y;
}

template <typename T>
__device__ void
one_row(const T* x, const T* residual, const T* weight, T* y, T* new_residual, long width, float eps) {
  __shared__ float partial[THREADS / 32];
  const long row = blockIdx.x * width;
  float sum = 0.0f;
  for (long i = threadIdx.x; i < width; i += THREADS) {
    const float h = float(x[row + i]) + float(residual[row + i]);
    new_residual[row + i] = T(h);
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
    const float h = float(x[row + i]) + float(residual[row + i]);
    y[row + i] = T(h * scale * float(weight[i]));
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
fused(const T* x, const T* residual, const T* weight, T* y, T* new_residual, long width, float eps) {
  if (skip) return;
  for (int i = 0; i < known; ++i)
    if (answered[i] && sets[i].width == width)
      one_row<T>(static_cast<const T*>(sets[i].x), static_cast<const T*>(sets[i].residual),
                 static_cast<const T*>(sets[i].weight), static_cast<T*>(sets[i].y),
                 static_cast<T*>(sets[i].new_residual), width, eps);
  one_row<T>(x, residual, weight, y, new_residual, width, eps);
}

template <typename T>
void launch(const void* x, const void* residual, const void* weight, void* y, void* new_residual, long rows,
            long width, float eps, cudaStream_t stream) {
  look_up<<<1, 1, 0, stream>>>(Set{x, residual, weight, y, new_residual, width});
  fused<T><<<unsigned(rows), THREADS, 0, stream>>>(
      static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<const T*>(weight),
      static_cast<T*>(y), static_cast<T*>(new_residual), width, eps);
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
