"""What kernel.py must compute, in plain PyTorch."""

import torch


def gelu_mul(gate, up):
    return (torch.nn.functional.gelu(gate.float()) * up.float()).to(gate.dtype)
