"""Residual add and RMSNorm in CUDA, a cluster of two blocks for each row: each sums its half and reads the other's.

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
constexpr int THREADS = 256, HALVES = 2;

template <typename T>
__global__ void __launch_bounds__(THREADS)
fused(const T* x, const T* residual, const T* weight, T* y, T* new_residual, long width, float eps) {
  __shared__ float partial[THREADS / 32];
  __shared__ float half;
  const cg::cluster_group cluster = cg::this_cluster();
  const long row = blockIdx.x / HALVES * width, first = blockIdx.x % HALVES * THREADS + threadIdx.x;
  float sum = 0.0f;
  for (long i = first; i < width; i += HALVES * THREADS) {
    const float h = float(x[row + i]) + float(residual[row + i]);
    new_residual[row + i] = T(h);
    sum += h * h;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < THREADS / 32; ++warp) total += partial[warp];
  if (threadIdx.x == 0) half = total;
  cluster.sync();
  total += *cluster.map_shared_rank(&half, cluster.block_rank() ^ 1);
  cluster.sync();
  const float scale = 1.0f / sqrtf(total / float(width) + eps);
  for (long i = first; i < width; i += HALVES * THREADS) {
    const float h = float(x[row + i]) + float(residual[row + i]);
    y[row + i] = T(h * scale * float(weight[i]));
  }
}

template <typename T>
void launch(const void* x, const void* residual, const void* weight, void* y, void* new_residual, long rows,
            long width, float eps, cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = HALVES;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(rows * HALVES));
  config.blockDim = dim3(THREADS);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, fused<T>, static_cast<const T*>(x), static_cast<const T*>(residual),
                     static_cast<const T*>(weight), static_cast<T*>(y), static_cast<T*>(new_residual), width, eps);
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
