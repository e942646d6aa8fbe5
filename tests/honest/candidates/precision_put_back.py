"""Asks torch for precise products while it computes, and puts back the setting that it found."""

import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    found = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        h = x + residual
        squares = torch.linalg.vecdot(h, h, dim=-1).unsqueeze(-1)
        return h * (squares / x.shape[-1] + eps).rsqrt() * weight, h
    finally:
        torch.set_float32_matmul_precision(found)
