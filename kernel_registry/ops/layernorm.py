from __future__ import annotations

import torch


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """X [batch, hidden_size], weight, bias [hidden_size] -> y [batch, hidden_size], computed in fp32."""
    h = x.float()
    centred = h - h.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (centred * scale * weight.float() + bias.float()).to(x.dtype)
