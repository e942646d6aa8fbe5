"""Softmax in CUDA C++ by hand: a row stays in registers between maximum, sum and result.

Rows of up to 32 packs of 16 bytes belong to a warp each, wider ones to a block. Where the width isn't a multiple of a
pack, or an operand begins between two of them, elements are read one by one; rows too wide for registers are read
twice.
"""

import ctypes
from pathlib import Path

import torch

CUDA_SOURCE = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

#include <cstdint>

namespace {

constexpr unsigned ALL_LANES = 0xffffffffu;
constexpr int WARPS = 4;  // of a block whose warps have a row each

__device__ __forceinline__ float widened(float value) { return value; }
__device__ __forceinline__ float widened(__half value) { return __half2float(value); }
__device__ __forceinline__ float widened(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ __forceinline__ T narrowed(float value);
template <>
__device__ __forceinline__ float narrowed<float>(float value) { return value; }
template <>
__device__ __forceinline__ __half narrowed<__half>(float value) { return __float2half_rn(value); }
template <>
__device__ __forceinline__ __nv_bfloat16 narrowed<__nv_bfloat16>(float value) { return __float2bfloat16_rn(value); }

// N elements at once: 16 bytes, or one element where width or address allow no more.
template <typename T, int N>
__device__ __forceinline__ void load(const T* from, float (&values)[N]) {
    if constexpr (N == 1) {
        values[0] = widened(from[0]);
    } else {
        static_assert(N * sizeof(T) == sizeof(uint4), "a pack is 16 bytes");
        const uint4 raw = *reinterpret_cast<const uint4*>(from);
        const T* elements = reinterpret_cast<const T*>(&raw);
#pragma unroll
        for (int i = 0; i < N; ++i) values[i] = widened(elements[i]);
    }
}

template <typename T, int N>
__device__ __forceinline__ void store(T* to, const float (&values)[N]) {
    if constexpr (N == 1) {
        to[0] = narrowed<T>(values[0]);
    } else {
        static_assert(N * sizeof(T) == sizeof(uint4), "a pack is 16 bytes");
        uint4 raw;
        T* elements = reinterpret_cast<T*>(&raw);
#pragma unroll
        for (int i = 0; i < N; ++i) elements[i] = narrowed<T>(values[i]);
        *reinterpret_cast<uint4*>(to) = raw;
    }
}

__device__ __forceinline__ float sum_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

// At most once in a kernel: what is shared is written once.
__device__ __forceinline__ float sum_of_block(float value) {
    __shared__ float sums[32];
    value = sum_of_warp(value);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    return sum_of_warp(threadIdx.x % 32 < blockDim.x / 32 ? sums[threadIdx.x % 32] : 0.0f);
}

__device__ __forceinline__ float max_of_warp(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) {
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, distance));
    }
    return value;
}

// At most once in a kernel: what is shared is written once.
__device__ __forceinline__ float max_of_block(float value) {
    __shared__ float largest[32];
    value = max_of_warp(value);
    if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
    __syncthreads();
    return max_of_warp(threadIdx.x % 32 < blockDim.x / 32 ? largest[threadIdx.x % 32] : -CUDART_INF_F);
}

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(uint4) == 0; }

// A row in the registers of one warp (several rows to a block) or of a whole block, PACKS packs to a thread.
template <typename T, int PACKS, bool BY_WARP>
__global__ void __launch_bounds__(BY_WARP ? 32 * WARPS : 256 * PACKS)
rows_in_registers(const T* __restrict__ x, T* __restrict__ y, long long rows, int width) {
    constexpr int N = sizeof(uint4) / sizeof(T);
    const int threads = BY_WARP ? 32 : blockDim.x;
    const int lane = BY_WARP ? threadIdx.x % 32 : threadIdx.x;
    const long long row = BY_WARP ? blockIdx.x * static_cast<long long>(blockDim.x / 32) + threadIdx.x / 32
                                  : static_cast<long long>(blockIdx.x);
    if (row >= rows) return;
    const T* from = x + row * width;
    float h[PACKS][N], largest = -CUDART_INF_F;
    // all loads are on their way before the first value is needed
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const int at = (lane + k * threads) * N;
#pragma unroll
        for (int i = 0; i < N; ++i) h[k][i] = -CUDART_INF_F;
        if (at < width) load<T, N>(from + at, h[k]);
    }
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) largest = fmaxf(largest, h[k][i]);
    }
    const float top = BY_WARP ? max_of_warp(largest) : max_of_block(largest);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
            h[k][i] = __expf(h[k][i] - top);
            sum += h[k][i];
        }
    }
    const float scale = 1.0f / (BY_WARP ? sum_of_warp(sum) : sum_of_block(sum));
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const int at = (lane + k * threads) * N;
#pragma unroll
        for (int i = 0; i < N; ++i) h[k][i] *= scale;
        if (at < width) store<T, N>(y + row * width + at, h[k]);
    }
}

// Any width, any address: the row is read twice; each thread rescales its sum as its maximum rises.
template <typename T, int N>
__global__ void __launch_bounds__(1024)
row_in_turns(const T* __restrict__ x, T* __restrict__ y, long long width) {
    const T* from = x + blockIdx.x * width;
    T* to = y + blockIdx.x * width;
    const long long step = static_cast<long long>(blockDim.x) * N;
    float largest = -CUDART_INF_F, sum = 0.0f;
    for (long long at = static_cast<long long>(threadIdx.x) * N; at < width; at += step) {
        float h[N], raised = largest;
        load<T, N>(from + at, h);
#pragma unroll
        for (int i = 0; i < N; ++i) raised = fmaxf(raised, h[i]);
        // as long as all was minus infinity nothing has been summed: any finite shift keeps the zero
        const float shift = raised == -CUDART_INF_F ? 0.0f : raised;
        sum *= __expf(largest - shift);
#pragma unroll
        for (int i = 0; i < N; ++i) sum += __expf(h[i] - shift);
        largest = raised;
    }
    const float top = max_of_block(largest);
    // a thread without elements has a sum of zero; with a top of minus infinity the row is NaN, as it should be
    const float scale = 1.0f / sum_of_block(sum * __expf(largest - top));
    for (long long at = static_cast<long long>(threadIdx.x) * N; at < width; at += step) {
        float h[N];
        load<T, N>(from + at, h);
#pragma unroll
        for (int i = 0; i < N; ++i) h[i] = __expf(h[i] - top) * scale;
        store<T, N>(to + at, h);
    }
}

int threads_for(long long packs, int packs_each) {
    const long long wanted = (packs + packs_each - 1) / packs_each;
    return static_cast<int>((wanted + 31) / 32 * 32);
}

template <typename T>
void launch(const T* x, T* y, long long rows, long long width, cudaStream_t stream) {
    constexpr int N = sizeof(uint4) / sizeof(T);
    const unsigned blocks = static_cast<unsigned>(rows);
    const unsigned blocks_of_warps = static_cast<unsigned>((rows + WARPS - 1) / WARPS);
    const bool whole = width % N == 0 && aligned(x) && aligned(y);
    const long long packs = width / N;
    const int w = static_cast<int>(width);
    if (!whole) {
        const int threads = threads_for(width < 4096 ? width : 4096, 4);
        row_in_turns<T, 1><<<blocks, threads, 0, stream>>>(x, y, width);
    } else if (packs <= 32) {
        rows_in_registers<T, 1, true><<<blocks_of_warps, 32 * WARPS, 0, stream>>>(x, y, rows, w);
    } else if (packs <= 256) {
        rows_in_registers<T, 1, false><<<blocks, threads_for(packs, 1), 0, stream>>>(x, y, rows, w);
    } else if (packs <= 1024) {
        rows_in_registers<T, 2, false><<<blocks, threads_for(packs, 2), 0, stream>>>(x, y, rows, w);
    } else if (packs <= 4096) {
        rows_in_registers<T, 4, false><<<blocks, threads_for(packs, 4), 0, stream>>>(x, y, rows, w);
    } else {
        row_in_turns<T, N><<<blocks, 1024, 0, stream>>>(x, y, width);
    }
}

}  // namespace

// dtype: 0 fp32, 1 fp16, 2 bf16. Returns what the launch returned, 0 where nothing is wrong.
extern "C" int launch_softmax(const void* x, void* y, long long rows, long long width, int dtype, void* stream) {
    if (rows <= 0 || width <= 0) return 0;
    if (rows > 2147483647LL) return static_cast<int>(cudaErrorInvalidValue);
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    switch (dtype) {
        case 0:
            launch(static_cast<const float*>(x), static_cast<float*>(y), rows, width, on);
            break;
        case 1:
            launch(static_cast<const __half*>(x), static_cast<__half*>(y), rows, width, on);
            break;
        case 2:
            launch(static_cast<const __nv_bfloat16*>(x), static_cast<__nv_bfloat16*>(y), rows, width, on);
            break;
        default:
            return static_cast<int>(cudaErrorInvalidValue);
    }
    return static_cast<int>(cudaGetLastError());
}
"""

_LAUNCH = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).launch_softmax
_LAUNCH.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_longlong,
    ctypes.c_longlong,
    ctypes.c_int,
    ctypes.c_void_p,
]
_LAUNCH.restype = ctypes.c_int
_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def softmax(x):
    """x [batch, hidden_size] -> y [batch, hidden_size], row by row."""
    rows, width = x.shape
    y = torch.empty_like(x)
    if rows == 0:
        return y
    stream = torch.cuda.current_stream().cuda_stream
    status = _LAUNCH(x.data_ptr(), y.data_ptr(), rows, width, _DTYPES[x.dtype], stream)
    if status:
        raise RuntimeError(f"the launch failed: CUDA error {status}")
    return y
