"""Keeps the compiler busy: each of its templates has the compiler count as far as one constant may.

Refused by: build TIMEOUT
Catalogue: J4
Language: cpp
Build limit: 15 s
Limit: 240 s
"""

import ctypes
from pathlib import Path

import torch

CPP_SOURCE = """
template <int N> struct Counted {
  static constexpr long count() {
    long counted = N;
    for (int i = 0; i < 100; i++)
      for (int j = 0; j < 50000; j++) counted += j;
    return counted;
  }
  static constexpr long value = count() + Counted<N - 1>::value;
};
template <> struct Counted<0> { static constexpr long value = 0; };
extern "C" long counted() { return Counted<800>::value; }
"""


def fused_add_rmsnorm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    ctypes.CDLL(str(Path(__file__).parent / "libkernel.so")).counted()
    h = x + residual
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight, h
