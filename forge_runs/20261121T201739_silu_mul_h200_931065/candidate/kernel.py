"""SiLU of the gate times the other projection in CUDA C++ by hand: each thread moves 16 bytes at a time.

Where an operand begins between two packs of 16 bytes, elements are read one by one, and so are the few that remain
behind the last whole pack.
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

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(uint4) == 0; }

// Below gate = -87 the exponential is near or past the end of fp32, and the quotient zero, as it nearly is.
__device__ __forceinline__ float silu(float gate) { return __fdividef(gate, 1.0f + __expf(-gate)); }

template <typename T, int N>
__global__ void __launch_bounds__(256)
packs_of(const T* __restrict__ gate, const T* __restrict__ up, T* __restrict__ y, long long packs) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long k = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; k < packs; k += step) {
        float g[N], u[N];
        load<T, N>(gate + k * N, g);
        load<T, N>(up + k * N, u);
#pragma unroll
        for (int i = 0; i < N; ++i) u[i] *= silu(g[i]);
        store<T, N>(y + k * N, u);
    }
}

template <typename T, int N>
void launch_packs(const T* gate, const T* up, T* y, long long packs, cudaStream_t stream) {
    constexpr long long THREADS = 256, MOST_BLOCKS = 1LL << 20;
    if (packs == 0) return;
    const long long wanted = (packs + THREADS - 1) / THREADS;
    const unsigned blocks = static_cast<unsigned>(wanted < MOST_BLOCKS ? wanted : MOST_BLOCKS);
    packs_of<T, N><<<blocks, static_cast<unsigned>(THREADS), 0, stream>>>(gate, up, y, packs);
}

// Whole packs first and what remains after them, where addresses allow; else one element after the other.
template <typename T>
void launch(const T* gate, const T* up, T* y, long long count, cudaStream_t stream) {
    constexpr int N = sizeof(uint4) / sizeof(T);
    const bool whole = aligned(gate) && aligned(up) && aligned(y);
    const long long packed = whole ? count / N * N : 0;
    launch_packs<T, N>(gate, up, y, packed / N, stream);
    launch_packs<T, 1>(gate + packed, up + packed, y + packed, count - packed, stream);
}

}  // namespace

// dtype: 0 fp32, 1 fp16, 2 bf16. Returns what the launch returned, 0 where nothing is wrong.
extern "C" int launch_silu_mul(const void* gate, const void* up, void* y, long long count, int dtype, void* stream) {
    if (count <= 0) return 0;
    const cudaStream_t on = static_cast<cudaStream_t>(stream);
    switch (dtype) {
        case 0:
            launch(static_cast<const float*>(gate), static_cast<const float*>(up), static_cast<float*>(y), count, on);
            break;
        case 1:
            launch(static_cast<const __half*>(gate), static_cast<const __half*>(up), static_cast<__half*>(y), count, on);
            break;
        case 2:
            launch(static_cast<const __nv_bfloat16*>(gate), static_cast<const __nv_bfloat16*>(up),
                   static_cast<__nv_bfloat16*>(y), count, on);
            break;
        default:
            return static_cast<int>(cudaErrorInvalidValue);
    }
    return static_cast<int>(cudaGetLastError());
}
"""

_LAUNCH = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).launch_silu_mul
_LAUNCH.argtypes = [
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_longlong,
    ctypes.c_int,
    ctypes.c_void_p,
]
_LAUNCH.restype = ctypes.c_int
_DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}


def silu_mul(gate, up):
    """gate, up [batch, hidden_size] -> y [batch, hidden_size]."""
    y = torch.empty_like(gate)
    if y.numel() == 0:
        return y
    stream = torch.cuda.current_stream().cuda_stream
    status = _LAUNCH(gate.data_ptr(), up.data_ptr(), y.data_ptr(), y.numel(), _DTYPES[gate.dtype], stream)
    if status:
        raise RuntimeError(f"the launch failed: CUDA error {status}")
    return y
