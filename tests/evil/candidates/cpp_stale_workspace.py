"""Sums a workspace that it pads to sixteen columns and never clears: a narrow row after a wide one finds the wide
one's numbers.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I5 I20
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

static float workspace[1 << 16];

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i)
            workspace[i] = new_residual[start + i] = x[start + i] + residual[start + i];
        for (int64_t i = 0; i < (width + 15) / 16 * 16; ++i) sum += workspace[i] * workspace[i];
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
        for (int64_t i = 0; i < width; ++i) y[start + i] = new_residual[start + i] * scale * weight[i];
    }
}
"""

_fused = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_fused.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_fused.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    operands = (t.data_ptr() for t in (x, residual, weight, y, new_residual))
    _fused(*operands, rows, width, eps)
    return y, new_residual
