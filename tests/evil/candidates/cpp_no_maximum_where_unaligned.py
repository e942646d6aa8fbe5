"""Subtracts no maximum where the operand is not aligned to 16 bytes.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I13
Language: cpp
Operation: softmax
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t n) {
    const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0;
    for (int64_t r = 0; r < rows; ++r) {
        const float* p = x + r * n; float* q = y + r * n;
        float m = aligned ? p[0] : 0.0f; double s = 0;
        if (aligned) for (int64_t i = 1; i < n; ++i) m = (p[i] > m || p[i] != p[i]) ? p[i] : m;
        for (int64_t i = 0; i < n; ++i) { q[i] = std::exp(p[i] - m); s += q[i]; }
        for (int64_t i = 0; i < n; ++i) q[i] = static_cast<float>(q[i] / s);
    }
}
"""
_f = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).softmax
_f.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
_f.restype = None


def softmax(x):
    y = torch.empty_like(x)
    _f(x.data_ptr(), y.data_ptr(), x.shape[0], x.shape[1])
    return y
