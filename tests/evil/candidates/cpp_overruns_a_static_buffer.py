"""Has room for 4096 columns and quietly forgets the others.

Refused by: scales INCORRECT_NUMERICAL
Catalogue: I5 E5
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <algorithm>

static float workspace[4096];

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width, kept = std::min<int64_t>(width, 4096);
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) new_residual[start + i] = x[start + i] + residual[start + i];
        for (int64_t i = 0; i < kept; ++i) workspace[i] = new_residual[start + i];
        for (int64_t i = 0; i < kept; ++i) sum += workspace[i] * workspace[i];
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
