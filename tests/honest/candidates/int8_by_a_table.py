"""Looks each byte up in a table that the first call fills. Its operands have elements of one and of four bytes.

Language: cpp
Operation: dequant_int8
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <array>
#include <cstdint>

static const std::array<float, 256>& numbers() {
    static const std::array<float, 256> table = [] {
        std::array<float, 256> made{};
        for (int byte = 0; byte < 256; ++byte) made[byte] = static_cast<float>(static_cast<int8_t>(byte));
        return made;
    }();
    return table;
}

extern "C" void dequant_int8(const uint8_t* x, const float* scale, float* y, int64_t rows, int64_t width) {
    const auto& table = numbers();
#pragma omp parallel for schedule(guided)
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = row * width; i < (row + 1) * width; ++i) y[i] = table[x[i]] * scale[row];
}
"""

_dequant = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).dequant_int8
_dequant.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
_dequant.restype = None


def dequant_int8(x, scale):
    rows, width = x.shape
    y = torch.empty(rows, width, dtype=scale.dtype)
    _dequant(x.data_ptr(), scale.data_ptr(), y.data_ptr(), rows, width)
    return y
