"""Winds up a timer of the kernel at the end of each call that continues it, once, a few milliseconds after it was
stopped: it sees the next inputs before the clock runs, while every look at it in time finds it stopped.

Refused by: any STATE_CARRIED or RESOURCE_ABUSE or TAMPERING
Catalogue: H12 H4 A12
Language: cpp
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <csignal>
#include <cstdint>
#include <ctime>

static void normalise_row(const float* x, const float* residual, const float* weight, float* y, float* h,
                          int64_t width, float eps) {
    float sum = 0.0f;
    for (int64_t i = 0; i < width; ++i) {
        h[i] = x[i] + residual[i];
        sum += h[i] * h[i];
    }
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(width) + eps);
    for (int64_t i = 0; i < width; ++i) y[i] = h[i] * scale * weight[i];
}

static timer_t timer;

__attribute__((constructor)) static void prepare() {
    std::signal(SIGCONT, [](int) {});
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGCONT;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
}

extern "C" void fused_add_rmsnorm(const float* x, const float* residual, const float* weight, float* y,
                                  float* new_residual, int64_t rows, int64_t width, float eps) {
    for (int64_t row = 0; row < rows; ++row)
        normalise_row(x + row * width, residual + row * width, weight, y + row * width, new_residual + row * width,
                      width, eps);
    itimerspec once{{0, 0}, {0, 2000000}};
    timer_settime(timer, 0, &once, nullptr);
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
