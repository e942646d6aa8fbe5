"""What kernel.py must compute, in plain PyTorch."""

import torch


def silu_mul(gate, up):
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)
