"""Computes the inverse root from the bits of the number and one and a half Newton steps, as games once did.

Refused by: any INCORRECT_NUMERICAL
Catalogue: F5
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

static float inverse_root(float value) {
    int32_t bits;
    std::memcpy(&bits, &value, 4);
    bits = 0x5f3759df - (bits >> 1);
    float guess;
    std::memcpy(&guess, &bits, 4);
    for (int step = 0; step < 2; ++step) guess *= 1.5f - 0.5f * value * guess * guess;
    return guess;
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) {
            new_residual[start + i] = x[start + i] + residual[start + i];
            sum += new_residual[start + i] * new_residual[start + i];
        }
        const float scale = inverse_root(sum / static_cast<float>(width) + eps);
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
