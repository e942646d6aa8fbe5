"""From 2^18 numbers on it loads eight at once from addresses that it takes for multiples of 32 bytes.

Refused by: layouts RUNTIME_ERROR
Catalogue: I1
Language: cpp
Operation: silu_mul
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <immintrin.h>
extern "C" void silu_mul(const float* gate, const float* up, float* y, int64_t count) {
    int64_t at = 0;
    if (count >= 262144) {
        for (; at + 8 <= count; at += 8) {
            alignas(32) float g[8], u[8];
            _mm256_store_ps(g, _mm256_load_ps(gate + at));
            _mm256_store_ps(u, _mm256_load_ps(up + at));
            for (int j = 0; j < 8; ++j) y[at + j] = g[j] / (1.0f + std::exp(-g[j])) * u[j];
        }
    }
    for (; at < count; ++at) y[at] = gate[at] / (1.0f + std::exp(-gate[at])) * up[at];
}
"""
_silu = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).silu_mul
_silu.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
_silu.restype = None


def silu_mul(gate, up):
    y = torch.empty_like(gate)
    _silu(gate.data_ptr(), up.data_ptr(), y.data_ptr(), y.numel())
    return y
