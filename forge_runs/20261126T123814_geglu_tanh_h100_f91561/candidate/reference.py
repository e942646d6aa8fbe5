"""What kernel.py must compute, in plain PyTorch."""

import torch


def geglu_tanh(gate, up):
    return (torch.nn.functional.gelu(gate.float(), approximate="tanh") * up.float()).to(gate.dtype)
