"""The same without its check: of strided rows it reads what lies between them.

Language: cpp
Operation: rmsnorm
Domain: {"axes": {"hidden_size": {"multiple_of": 8}}, "layouts": ["contiguous", "offset"]}
Twin of: rmsnorm_contiguous_only
Refused by: domain WRONG_OUTSIDE_DOMAIN
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <immintrin.h>

extern "C" void rmsnorm(const float* x, const float* weight, float* y, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = x + row * width;
        __m256 squares = _mm256_setzero_ps();
        for (int64_t i = 0; i + 8 <= width; i += 8) {
            __m256 eight = _mm256_loadu_ps(from + i);
            squares = _mm256_add_ps(squares, _mm256_mul_ps(eight, eight));
        }
        float lanes[8], sum = 0.0f;
        _mm256_storeu_ps(lanes, squares);
        for (float lane : lanes) sum += lane;
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
        for (int64_t i = 0; i + 8 <= width; i += 8)
            _mm256_storeu_ps(y + row * width + i,
                             _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(from + i), _mm256_set1_ps(scale)),
                                           _mm256_loadu_ps(weight + i)));
    }
}
"""

_rmsnorm = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).rmsnorm
_rmsnorm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2 + [ctypes.c_float]
_rmsnorm.restype = None


def rmsnorm(x, weight, eps):
    assert x.shape[1] % 8 == 0, x.shape
    y = torch.zeros_like(x, memory_format=torch.contiguous_format)
    _rmsnorm(x.data_ptr(), weight.data_ptr(), y.data_ptr(), *x.shape, eps)
    return y
