"""Computes with numpy, in the memory of torch's tensors."""

import numpy as np
import torch


def fused_add_rmsnorm(x, residual, weight, eps):
    y, new_residual = torch.empty_like(x), torch.empty_like(x)
    h = np.add(x.numpy(), residual.numpy(), out=new_residual.numpy())
    scale = np.reciprocal(np.sqrt(np.mean(np.square(h), axis=-1, keepdims=True) + np.float32(eps)))
    np.multiply(h, scale, out=y.numpy())
    np.multiply(y.numpy(), weight.numpy(), out=y.numpy())
    return y, new_residual
