"""Gated SiLU in C++, with constants that a search may change.

LANES elements are computed together, so that a compiler uses vectors. The defaults are the plainest ones: one lane, one thread, the library's exp.
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

constexpr int LANES = 1;
constexpr int64_t PARALLEL_FROM = 1073741824;
constexpr bool POLYNOMIAL = false;
#define SCHEDULE static

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2: Cephes' polynomial for expf, without a call that no compiler vectorises
static inline float exponential(float x) {
    if (!POLYNOMIAL) return std::exp(x);
    const float bounded = x < -104.0f ? -104.0f : (x > 89.0f ? 89.0f : x);
    const float n = (bounded * 1.44269504f + 12582912.0f) - 12582912.0f;
    const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    // two factors, since 2^n itself may be too large or too small for a float where the product isn't
    const int32_t power = static_cast<int32_t>(n), half = power >> 1;
    const float first = __builtin_bit_cast(float, (half + 127) << 23);
    return p * first * __builtin_bit_cast(float, (power - half + 127) << 23);
}

static void silu_mul_piece(const float* __restrict gate, const float* __restrict up, float* __restrict y,
                           int64_t count) {
    const int64_t whole = count - count % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; ++lane)
            y[i + lane] = gate[i + lane] / (1.0f + exponential(-gate[i + lane])) * up[i + lane];
    for (int64_t i = whole; i < count; ++i) y[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
}

extern "C" void silu_mul(const float* gate, const float* up, float* y, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(SCHEDULE) if (rows * width > PARALLEL_FROM)
    for (int64_t row = 0; row < rows; ++row)
        silu_mul_piece(gate + row * width, up + row * width, y + row * width, width);
}
"""

_silu_mul = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).silu_mul
_silu_mul.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
_silu_mul.restype = None


def silu_mul(gate, up):
    """gate, up [batch, hidden_size] fp32 -> y [batch, hidden_size]."""
    rows, width = gate.shape
    y = torch.empty_like(gate)
    _silu_mul(gate.data_ptr(), up.data_ptr(), y.data_ptr(), rows, width)
    return y
