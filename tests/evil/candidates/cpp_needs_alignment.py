"""Loads eight elements at once from wherever the width is a multiple of eight, and takes it for granted that
operands begin at a multiple of 32 bytes.

Refused by: layouts RUNTIME_ERROR
Catalogue: I11
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <immintrin.h>

static void normalise_row(const float* x, const float* residual, const float* weight, float* y, float* h,
                          int64_t width, float eps) {
    float sum = 0.0f;
    for (int64_t i = 0; i < width; ++i) {
        h[i] = x[i] + residual[i];
        sum += h[i] * h[i];
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
    for (int64_t i = 0; i < width; ++i) y[i] = h[i] * scale * weight[i];
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    volatile float sink = 0.0f;
    if (width % 8 == 0)
        for (int64_t i = 0; i < rows * width; i += 8) {
            __m256 loaded;
            asm volatile("vmovaps %1, %0" : "=x"(loaded) : "m"(*reinterpret_cast<const __m256*>(x + i)));
            sink = loaded[0];
        }
    for (int64_t row = 0; row < rows; ++row)
        normalise_row(x + row * width, residual + row * width, weight, y + row * width, new_residual + row * width,
                      width, eps);
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
