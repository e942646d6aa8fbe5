"""Counts the calls of a shape in sixteen bits, and the call at which the count runs over gets a wrong number.

Refused by: endurance INCORRECT_NUMERICAL
Catalogue: C6 I8
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

static uint16_t calls = 0;
static int64_t last_rows = 0, last_width = 0;

static float normalise_row(const float* x, const float* residual, const float* weight, float* y,
                           float* new_residual, int64_t width, float eps) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
        const float h = x[i] + residual[i];
        new_residual[i] = h;
        sum += h * h;
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) y[i] = new_residual[i] * scale * weight[i];
    return scale;
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    if (rows != last_rows || width != last_width) calls = 0;
    last_rows = rows;
    last_width = width;
    ++calls;
#pragma omp parallel for schedule(static) if (rows * width > 32768)
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        normalise_row(x + start, residual + start, weight, y + start, new_residual + start, width, eps);
    }
    if (calls == 0 && rows * width > 0) y[0] = 1.0e6f;
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
