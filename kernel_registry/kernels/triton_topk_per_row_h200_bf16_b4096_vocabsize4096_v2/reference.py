"""What kernel.py must compute, in plain PyTorch."""

import torch


def topk_per_row(x):
    values, indices = x.topk(min(8, x.shape[-1]), -1)
    return values, indices.to(torch.int32)
