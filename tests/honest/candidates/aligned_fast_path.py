"""Takes aligned vector loads only where every address allows it, and unaligned ones elsewhere.

Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

typedef float Lanes __attribute__((vector_size(32)));

static float squares(const float* h, int64_t width) {
    float sum = 0.0f;
    int64_t i = 0;
    if (reinterpret_cast<uintptr_t>(h) % 32 == 0) {
        Lanes lanes = {};
        for (; i + 8 <= width; i += 8) {
            const Lanes loaded = *reinterpret_cast<const Lanes*>(h + i);
            lanes += loaded * loaded;
        }
        for (int lane = 0; lane < 8; ++lane) sum += lanes[lane];
    }
    for (; i < width; ++i) sum += h[i] * h[i];
    return sum;
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t start = row * width;
        for (int64_t i = start; i < start + width; ++i) new_residual[i] = x[i] + residual[i];
        const float scale = 1.0f / std::sqrt(squares(new_residual + start, width) / static_cast<float>(width) + eps);
        for (int64_t i = start; i < start + width; ++i) y[i] = new_residual[i] * scale * weight[i - start];
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
