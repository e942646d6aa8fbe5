from __future__ import annotations

import torch


def rmsnorm_strided(qkv: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Qkv [batch, 3 hidden_size], weight [hidden_size] -> y [batch, hidden_size] of the first third, in fp32."""
    h = qkv[:, : weight.shape[0]].float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (h * scale * weight.float()).to(qkv.dtype)
