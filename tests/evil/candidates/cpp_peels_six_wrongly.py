"""Computes single elements up to an address that 64 divides, and forgets the last one where they are six.

Refused by: layouts INCORRECT_NUMERICAL or NON_FINITE
Catalogue: I1
Language: cpp
Operation: silu_mul
Shape: {"batch": 4, "hidden_size": 256}
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

static float product(float gate, float up) { return gate / (1.0f + std::exp(-gate)) * up; }

extern "C" void silu_mul(const float* gate, const float* up, float* y, int64_t count) {
    const int64_t head = std::min<int64_t>(count, (64 - reinterpret_cast<uintptr_t>(gate) % 64) % 64 / 4);
    for (int64_t i = 0; i < (head == 6 ? 5 : head); ++i) y[i] = product(gate[i], up[i]);
    for (int64_t i = head; i < count; ++i) y[i] = product(gate[i], up[i]);
}
"""

_silu = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).silu_mul
_silu.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
_silu.restype = None


def silu_mul(gate, up):
    """gate, up [batch, hidden_size] -> y [batch, hidden_size]."""
    y = torch.empty_like(gate)
    _silu(gate.data_ptr(), up.data_ptr(), y.data_ptr(), gate.numel())
    return y
