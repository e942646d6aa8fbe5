"""Long rows are loaded eight elements at once, from addresses that it takes for multiples of 32 bytes.

Refused by: layouts RUNTIME_ERROR
Catalogue: I1
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <immintrin.h>
extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        double sum = 0.0;
        if (width >= 2048 && width % 8 == 0) {
            for (int64_t i = 0; i < width; i += 8) {
                alignas(32) float h[8];
                const __m256 given = _mm256_load_ps(x + start + i);
                _mm256_store_ps(h, _mm256_add_ps(given, _mm256_load_ps(residual + start + i)));
                for (int j = 0; j < 8; ++j) { new_residual[start + i + j] = h[j]; sum += double(h[j]) * h[j]; }
            }
        } else {
            for (int64_t i = 0; i < width; ++i) {
                const float h = x[start + i] + residual[start + i];
                new_residual[start + i] = h; sum += double(h) * h;
            }
        }
        const float scale = 1.0f / std::sqrt(static_cast<float>(sum / width) + eps);
        for (int64_t i = 0; i < width; ++i) y[start + i] = new_residual[start + i] * weight[i] * scale;
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
