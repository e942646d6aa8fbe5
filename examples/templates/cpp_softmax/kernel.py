"""Softmax in C++, with constants that a search may change.

A row is read for its maximum, then for its sum. LANES partial results let a compiler use vectors. The defaults are the plainest ones: one lane, one thread, the library's exp.
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

// a float sum of thousands of equal numbers errs by more than a row allows: it ends after this many
constexpr int64_t RUN = 64;

static void softmax_row(const float* __restrict x, float* __restrict y, int64_t width) {
    float tops[LANES];
    const int64_t whole = width - width % LANES;
    for (int lane = 0; lane < LANES; ++lane) tops[lane] = -INFINITY;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; ++lane) tops[lane] = x[i + lane] > tops[lane] ? x[i + lane] : tops[lane];
    float top = -INFINITY;
    double sum = 0.0;
    for (int64_t i = whole; i < width; ++i) top = x[i] > top ? x[i] : top;
    for (int lane = 0; lane < LANES; ++lane) top = tops[lane] > top ? tops[lane] : top;
    for (int64_t begin = 0; begin < whole; begin += RUN * LANES) {
        const int64_t end = begin + RUN * LANES < whole ? begin + RUN * LANES : whole;
        float sums[LANES] = {};
        for (int64_t i = begin; i < end; i += LANES)
            for (int lane = 0; lane < LANES; ++lane) {
                const float e = exponential(x[i + lane] - top);
                y[i + lane] = e;
                sums[lane] += e;
            }
        for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
    }
    for (int64_t i = whole; i < width; ++i) {
        const float e = exponential(x[i] - top);
        y[i] = e;
        sum += e;
    }
    const float scale = static_cast<float>(1.0 / sum);
    for (int64_t i = 0; i < width; ++i) y[i] *= scale;
}

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(SCHEDULE) if (rows * width > PARALLEL_FROM)
    for (int64_t row = 0; row < rows; ++row) softmax_row(x + row * width, y + row * width, width);
}
"""

_softmax = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).softmax
_softmax.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
_softmax.restype = None


def softmax(x):
    """x [batch, hidden_size] fp32 -> y [batch, hidden_size], row by row."""
    rows, width = x.shape
    y = torch.empty_like(x)
    _softmax(x.data_ptr(), y.data_ptr(), rows, width)
    return y
