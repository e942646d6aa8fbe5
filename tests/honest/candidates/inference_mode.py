"""Returns tensors that were made in inference mode, filled by out= and in place."""

import torch


@torch.inference_mode()
def fused_add_rmsnorm(x, residual, weight, eps):
    h = torch.empty_like(x)
    torch.add(x, residual, out=h)
    norm = torch.linalg.vector_norm(h, dim=-1, keepdim=True)
    scale = norm.square_().div_(h.size(-1)).add_(eps).pow_(-0.5)
    return torch.mul(h, scale).mul_(weight), h
