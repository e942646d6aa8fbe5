"""Residual add and RMSNorm in C++, with constants that a search may change.

The sum of squares is kept in LANES partial sums, since a compiler may not reorder one sum of floats, and one sum of a
wide row errs too much. Rows are shared among threads if there is enough work. The defaults are the plainest ones that
are right: few sums, one thread.
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

constexpr int LANES = 4;
constexpr int64_t PARALLEL_FROM = 1073741824;
constexpr bool ADD_AGAIN = false;
#define SCHEDULE static

static void normalise_row(const float* __restrict x, const float* __restrict residual, const float* __restrict weight,
                          float* __restrict y, float* __restrict new_residual, int64_t width, float eps) {
    float sums[LANES] = {};
    const int64_t whole = width - width % LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        for (int lane = 0; lane < LANES; ++lane) {
            const float h = x[i + lane] + residual[i + lane];
            new_residual[i + lane] = h;
            sums[lane] += h * h;
        }
    }
    float sum = 0.0f;
    for (int64_t i = whole; i < width; ++i) {
        const float h = x[i] + residual[i];
        new_residual[i] = h;
        sum += h * h;
    }
    for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
    for (int64_t i = 0; i < width; ++i) {
        const float h = ADD_AGAIN ? x[i] + residual[i] : new_residual[i];
        y[i] = h * scale * weight[i];
    }
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
#pragma omp parallel for schedule(SCHEDULE) if (rows * width > PARALLEL_FROM)
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        normalise_row(x + start, residual + start, weight, y + start, new_residual + start, width, eps);
    }
}
"""

_library = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so")))
_fused = _library.fused_add_rmsnorm
_fused.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_fused.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size] fp32, weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y = torch.empty_like(x)
    new_residual = torch.empty_like(x)
    _fused(
        x.data_ptr(), residual.data_ptr(), weight.data_ptr(), y.data_ptr(), new_residual.data_ptr(), rows, width, eps
    )
    return y, new_residual
