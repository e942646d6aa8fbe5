"""Crashes on purpose and jumps out of the signal handler, to return as if nothing had happened.

Refused by: signature STATE_CARRIED
Catalogue: I25 B15
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <csetjmp>
#include <csignal>

static sigjmp_buf before;

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    std::signal(SIGSEGV, [](int) { siglongjmp(before, 1); });
    if (sigsetjmp(before, 1) == 0) *reinterpret_cast<volatile float*>(8) = 1.0f;
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
