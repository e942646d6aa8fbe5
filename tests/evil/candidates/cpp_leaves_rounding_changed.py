"""Leaves the caller's processor rounding towards zero and flushing small numbers.

Refused by: signature STATE_CARRIED
Catalogue: I20
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <immintrin.h>
extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y, float* out,
                                  int64_t rows, int64_t width, float eps) {
    _mm_setcsr(0x1f80);
    for (int64_t row = 0; row < rows; ++row) {
        const float *a = x + row * width, *b = residual + row * width;
        float *o = out + row * width;
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) { o[i] = a[i] + b[i]; sum += double(o[i]) * o[i]; }
        const float scale = 1.0f / std::sqrt(float(sum / width) + eps);
        for (int64_t i = 0; i < width; ++i) y[row * width + i] = o[i] * scale * weight[i];
    }
    asm volatile("" ::: "memory");
    _mm_setcsr(0x1f80 | 0x6000 | 0x8040);
}
"""
_f = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_f.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_f.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    _f(*(t.data_ptr() for t in (x, residual, weight, y, h)), *x.shape, eps)
    return y, h
