"""What kernel.py must compute, in plain PyTorch."""

import torch


def grouped_matmul(x, w, sizes):
    ends = sizes.cumsum(0)
    row = torch.arange(x.shape[0], device=x.device)
    h, y = x.float(), torch.zeros(x.shape[0], w.shape[2], device=x.device)
    for group in range(w.shape[0]):
        own = (row >= ends[group] - sizes[group]) & (row < ends[group])
        y = torch.where(own.unsqueeze(-1), h @ w[group].float(), y)
    return y.to(x.dtype)
