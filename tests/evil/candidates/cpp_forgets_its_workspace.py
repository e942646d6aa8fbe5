"""Takes a workspace of eight rows for each call and never gives it back: right for hours, until the server has no
memory left.

Refused by: leaks RESOURCE_ABUSE
Catalogue: J4
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    float* workspace = static_cast<float*>(std::calloc(8 * width, sizeof(float)));
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        double sum = 0.0;
        for (int64_t i = 0; i < width; ++i) {
            workspace[i] = x[start + i] + residual[start + i];
            workspace[width + i] = workspace[i] * weight[i];
            sum += double(workspace[i]) * workspace[i];
        }
        const float scale = 1.0f / std::sqrt(static_cast<float>(sum / width) + eps);
        for (int64_t i = 0; i < width; ++i) {
            new_residual[start + i] = workspace[i];
            y[start + i] = workspace[width + i] * scale;
        }
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
