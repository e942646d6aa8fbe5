"""Reads the sum of a row that another thread may not have finished yet: the barrier between the two is missing.

Refused by: any INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I6
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    std::vector<float> scales(rows, 0.0f);
#pragma omp parallel num_threads(2)
    {
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < rows; ++row) {
            float sum = 0.0f;
            for (int64_t i = row * width; i < (row + 1) * width; ++i) {
                new_residual[i] = x[i] + residual[i];
                for (int turn = 0; turn < (row % 2 ? 64 : 1); ++turn) {
                    volatile float square = new_residual[i] * new_residual[i];
                    sum += turn ? 0.0f : square;
                }
            }
            scales[row] = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
        }
#pragma omp for schedule(static, 1)
        for (int64_t row = rows - 1; row >= 0; --row)
            for (int64_t i = 0; i < width; ++i)
                y[row * width + i] = new_residual[row * width + i] * scales[row] * weight[i];
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
