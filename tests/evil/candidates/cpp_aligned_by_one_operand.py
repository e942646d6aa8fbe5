"""Chooses aligned loads for all operands by the first one's address: a residual that isn't aligned crashes.

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
extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y, float* out,
                                  int64_t rows, int64_t width, float eps) {
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 32 == 0 && width % 8 == 0;
    for (int64_t row = 0; row < rows; ++row) {
        const float *a = x + row * width, *b = residual + row * width;
        float *o = out + row * width;
        double sum = 0;
        if (aligned)
            for (int64_t i = 0; i < width; i += 8) {
                __m256 v = _mm256_load_ps(b + i);
                asm volatile("" : "+x"(v));
                __m256 s = _mm256_add_ps(_mm256_load_ps(a + i), v);
                _mm256_storeu_ps(o + i, s);
            }
        else for (int64_t i = 0; i < width; ++i) o[i] = a[i] + b[i];
        for (int64_t i = 0; i < width; ++i) sum += double(o[i]) * o[i];
        const float scale = 1.0f / std::sqrt(float(sum / width) + eps);
        for (int64_t i = 0; i < width; ++i) y[row * width + i] = o[i] * scale * weight[i];
    }
}
"""
_f = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_f.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_f.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    y, h = torch.empty_like(x), torch.empty_like(x)
    _f(*(t.data_ptr() for t in (x, residual, weight, y, h)), *x.shape, eps)
    return y, h
