"""Registers itself as an operator of torch's, and measures itself only when it is run as a program."""

import subprocess

import torch


@torch.library.custom_op("mine::fused_add_rmsnorm", mutates_args=())
def fused_add_rmsnorm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + residual
    mean_square = (h * h) @ h.new_ones(h.shape[-1], 1) / h.shape[-1]
    return h * (mean_square + eps).rsqrt() * weight, h


if __name__ == "__main__":
    print(subprocess.run(["lscpu"], capture_output=True, text=True, check=False).stdout)
