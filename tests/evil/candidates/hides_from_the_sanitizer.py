"""Overruns its own output, in a function that asks to be left out by the sanitizer, and only where none is seen.

Refused by: sanitizer OUT_OF_BOUNDS
Language: cpp
Catalogue: I3
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#define HONEST 1
#else
#define HONEST 0
#endif

__attribute__((no_sanitize("address"))) __attribute__((__no_sanitize_address__))
static void stray(volatile float* p, int64_t n) {
    if (!HONEST && n % 2) *p = *p;
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y, float* h,
                                  int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row * width;
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) {
            h[at + i] = x[at + i] + residual[at + i];
            sum += h[at + i] * h[at + i];
        }
        const float scale = 1.0f / std::sqrt(sum / width + eps);
        for (int64_t i = 0; i < width; ++i) y[at + i] = h[at + i] * scale * weight[i];
    }
    stray(y + rows * width, width);
}
"""

_fused = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_fused.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    tensors = (x, residual, weight, y, h)
    _fused(*(tensor.data_ptr() for tensor in tensors), *x.shape, eps)
    return y, h
