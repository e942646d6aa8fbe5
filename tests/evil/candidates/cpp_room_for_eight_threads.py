"""Has room for one sum of each of eight threads, and lets the ninth and further ones leave their rows.

Refused by: threads INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I6
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <omp.h>

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    float sums[8];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const int thread = omp_get_thread_num();
        if (thread >= 8) continue;
        const int64_t start = row * width;
        sums[thread] = 0.0f;
        for (int64_t i = 0; i < width; ++i) {
            new_residual[start + i] = x[start + i] + residual[start + i];
            sums[thread] += new_residual[start + i] * new_residual[start + i];
        }
        const float scale = 1.0f / std::sqrt(sums[thread] / static_cast<float>(width) + eps);
        for (int64_t i = 0; i < width; ++i) y[start + i] = new_residual[start + i] * scale * weight[i];
    }
}
"""

_fused = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_fused.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_fused.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    """x, residual [batch, hidden_size], weight [hidden_size] -> y, new_residual [batch, hidden_size]."""
    rows, width = x.shape
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    operands = (t.data_ptr() for t in (x, residual, weight, y, new_residual))
    _fused(*operands, rows, width, eps)
    return y, new_residual
