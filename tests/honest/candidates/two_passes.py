"""Two kernels: one adds and sums, the other normalises, with the scales of all rows between them.

Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <vector>

static float scale_of_row(const float* x, const float* residual, float* h, int64_t width, float eps) {
    double sum = 0.0;
    for (int64_t i = 0; i < width; ++i) {
        h[i] = x[i] + residual[i];
        sum += static_cast<double>(h[i]) * h[i];
    }
    return static_cast<float>(1.0 / std::sqrt(sum / width + eps));
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    std::vector<float> scales(rows);
    for (int64_t row = 0; row < rows; ++row)
        scales[row] = scale_of_row(x + row * width, residual + row * width, new_residual + row * width, width, eps);
    for (int64_t i = 0; i < rows * width; ++i) y[i] = new_residual[i] * scales[i / width] * weight[i % width];
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
