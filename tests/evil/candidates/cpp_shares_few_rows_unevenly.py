"""Shares each of a few rows among several threads, by multiples of 16 columns: what is left isn't summed.

Refused by: threads INCORRECT_NUMERICAL
Catalogue: I13
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <algorithm>
#include <omp.h>

static void whole_row(const float* x, const float* r, const float* w, float* y, float* n, int64_t width, float eps) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
        const float h = x[i] + r[i];
        n[i] = h;
        sum += h * h;
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) y[i] = n[i] * scale * w[i];
}

extern "C" void fused_add_rmsnorm(const float* x, const float* r, const float* w, float* y, float* n, int64_t rows,
                                  int64_t width, float eps) {
    const int threads = omp_get_max_threads();
    if (rows < 2 || rows >= threads || width < 256) {
#pragma omp parallel for schedule(static)
        for (int64_t row = 0; row < rows; ++row)
            whole_row(x + row * width, r + row * width, w, y + row * width, n + row * width, width, eps);
        return;
    }
    const int64_t parts = threads / rows;
    const int64_t share = parts > 1 ? width / parts / 16 * 16 : width;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float *a = x + row * width, *b = r + row * width;
        float sum = 0.0f;
        for (int64_t i = 0; i < width; ++i) { n[row * width + i] = a[i] + b[i]; }
        for (int64_t i = 0; i < share * parts; ++i) { const float h = n[row * width + i]; sum += h * h; }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
        for (int64_t i = 0; i < width; ++i) y[row * width + i] = n[row * width + i] * scale * w[i];
    }
}
"""
_f = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).fused_add_rmsnorm
_f.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_f.restype = None


def fused_add_rmsnorm(x, residual, weight, eps):
    rows, width = x.shape
    y, new = torch.empty_like(x), torch.empty_like(x)
    _f(x.data_ptr(), residual.data_ptr(), weight.data_ptr(), y.data_ptr(), new.data_ptr(), rows, width, eps)
    return y, new
