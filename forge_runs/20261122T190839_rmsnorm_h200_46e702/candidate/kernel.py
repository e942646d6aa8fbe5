"""RMSNorm in CUDA C++ by hand: a row stays in registers between the sum of its squares and the result.

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

#include <cstdint>

namespace {

constexpr unsigned ALL_LANES = 0xffffffffu;

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

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(uint4) == 0; }

// A row in the registers of one warp (several rows to a block) or of a whole block, PACKS packs to a thread.
template <typename T, int PACKS, bool BY_WARP>
__global__ void __launch_bounds__(1024)
rows_in_registers(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, long long rows,
                  int width, float eps) {
    constexpr int N = sizeof(uint4) / sizeof(T);
    const int threads = BY_WARP ? 32 : blockDim.x;
    const int lane = BY_WARP ? threadIdx.x % 32 : threadIdx.x;
    const long long row = BY_WARP ? blockIdx.x * static_cast<long long>(blockDim.x / 32) + threadIdx.x / 32
                                  : static_cast<long long>(blockIdx.x);
    if (row >= rows) return;
    const T* from = x + row * width;
    // where registers allow, the weight is on its way while the squares are summed
    constexpr bool EARLY = PACKS <= 2;
    float h[PACKS][N], w[PACKS][N], squares = 0.0f;
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const int at = (lane + k * threads) * N;
        if (at >= width) break;
        load<T, N>(from + at, h[k]);
        if constexpr (EARLY) load<T, N>(weight + at, w[k]);
    }
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        if ((lane + k * threads) * N >= width) break;
#pragma unroll
        for (int i = 0; i < N; ++i) squares += h[k][i] * h[k][i];
    }
    const float total = BY_WARP ? sum_of_warp(squares) : sum_of_block(squares);
    const float scale = rsqrtf(total / width + eps);
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
        const int at = (lane + k * threads) * N;
        if (at >= width) break;
        if constexpr (!EARLY) load<T, N>(weight + at, w[k]);
#pragma unroll
        for (int i = 0; i < N; ++i) w[k][i] *= h[k][i] * scale;
        store<T, N>(y + row * width + at, w[k]);
    }
}

// Any width, any address: the row is read twice.
template <typename T, int N>
__global__ void __launch_bounds__(1024)
row_in_turns(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, long long width, float eps) {
    const T* from = x + blockIdx.x * width;
    T* to = y + blockIdx.x * width;
    float squares = 0.0f;
    for (long long at = static_cast<long long>(threadIdx.x) * N; at < width; at += static_cast<long long>(blockDim.x) * N) {
        float h[N];
        load<T, N>(from + at, h);
#pragma unroll
        for (int i = 0; i < N; ++i) squares += h[i] * h[i];
    }
    const float scale = rsqrtf(sum_of_block(squares) / width + eps);
    for (long long at = static_cast<long long>(threadIdx.x) * N; at < width; at += static_cast<long long>(blockDim.x) * N) {
        float h[N], w[N];
        load<T, N>(from + at, h);
        load<T, N>(weight + at, w);
#pragma unroll
        for (int i = 0; i < N; ++i) w[i] *= h[i] * scale;
        store<T, N>(to + at, w);
    }
}

int threads_for(long long packs, int packs_each) {
    const long long wanted = (packs + packs_each - 1) / packs_each;
    return static_cast<int>((wanted + 31) / 32 * 32);
}

template <typename T>
void launch(const T* x, const T* weight, T* y, long long rows, long long width, float eps, cudaStream_t stream) {
    constexpr int N = sizeof(uint4) / sizeof(T);
    constexpr int WARPS = 4;
    const unsigned blocks = static_cast<unsigned>(rows);
    const unsigned blocks_of_warps = static_cast<unsigned>((rows + WARPS - 1) / WARPS);
    const bool whole = width % N == 0 && aligned(x) && aligned(weight) && aligned(y);
    const long long packs = width / N;
    const int w = static_cast<int>(width);
    if (!whole) {
        const int threads = threads_for(width < 4096 ? width : 4096, 4);
        row_in_turns<T, 1><<<blocks, threads, 0, stream>>>(x, weight, y, width, eps);
    } else if (packs <= 32) {
        rows_in_registers<T, 1, true><<<blocks_of_warps, 32 * WARPS, 0, stream>>>(x, weight, y, rows, w, eps);
    } else if (packs <= 256) {
        rows_in_registers<T, 1, false><<<blocks, threads_for(packs, 1), 0, stream>>>(x, weight, y, rows, w, eps);
    } else if (packs <= 1024) {
        // two loads on their way in each thread: so many more bytes of a row are, for the same threads
        rows_in_registers<T, 2, false><<<blocks, threads_for(packs, 2), 0, stream>>>(x, weight, y, rows, w, eps);
    } else if (packs <= 4096) {
        rows_in_registers<T, 4, false><<<blocks, threads_for(packs, 4), 0, stream>>>(x, weight, y, rows, w, eps);
    } else {
        row_in_turns<T, N><<<blocks, 1024, 0, stream>>>(x, weight, y, width, eps);
    }
}

}  // namespace

// dtype: 0 fp32, 1 fp16, 2 bf16. Returns what the launch returned, 0 where nothing is wrong.
extern "C" int launch_rmsnorm(const void* x, const void* weight, void* y, long long rows, long long width, float eps,
                              int dtype, void* stream) {
    if (rows <= 0 || width <= 0) return 0;
    if (rows > 2147483647LL) return static_cast<int>(cudaErrorInvalidValue);
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    switch (dtype) {
        case 0:
            launch(static_cast<const float*>(x), static_cast<const float*>(weight), static_cast<float*>(y), rows, width,
                   eps, on);
            break;
        case 1:
            launch(static_cast<const __half*>(x), static_cast<const __half*>(weight), static_cast<__half*>(y), rows,
                   width, eps, on);
            break;
        case 2:
            launch(static_cast<const __nv_bfloat16*>(x), static_cast<const __nv_bfloat16*>(weight),
                   static_cast<__nv_bfloat16*>(y), rows, width, eps, on);
            break;
        default:
            return static_cast<int>(cudaErrorInvalidValue);
    }
    return static_cast<int>(cudaGetLastError());
}
"""

_LAUNCH = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).launch_rmsnorm
_LAUNCH.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_longlong,
    ctypes.c_longlong,
    ctypes.c_float,
    ctypes.c_int,
    ctypes.c_void_p,
]
_LAUNCH.restype = ctypes.c_int
_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def rmsnorm(x, weight, eps):
    """x [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size]."""
    rows, width = x.shape
    y = torch.empty_like(x)
    if rows == 0:
        return y
    stream = torch.cuda.current_stream().cuda_stream
    status = _LAUNCH(x.data_ptr(), weight.data_ptr(), y.data_ptr(), rows, width, eps, _DTYPES[x.dtype], stream)
    if status:
        raise RuntimeError(f"the launch failed: CUDA error {status}")
    return y
