"""Writes records to the reply channel from a constructor of the shared object.

Refused by: load TAMPERING
Catalogue: G2 J18
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <unistd.h>

__attribute__((constructor)) static void reply() {
    static char record[580] = "RPLY";
    for (int time = 0; time < 3; ++time)
        if (write(4, record, sizeof record) < 0) _exit(1);
}

extern "C" void fused_add_rmsnorm() {}
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
