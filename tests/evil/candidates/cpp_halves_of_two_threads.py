"""Divides each row between two threads by their number: with one thread, the second half stays unwritten.

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
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) {
            new_residual[start + i] = x[start + i] + residual[start + i];
            sum += new_residual[start + i] * new_residual[start + i];
        }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
#pragma omp parallel num_threads(omp_get_max_threads() < 2 ? 1 : 2)
        {
            const int64_t half = omp_get_thread_num();
            for (int64_t i = half * (width / 2); i < (half ? width : width / 2); ++i)
                y[start + i] = new_residual[start + i] * scale * weight[i];
        }
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
