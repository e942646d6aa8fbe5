from __future__ import annotations

import torch


def gated_rmsnorm_quant(
    x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """X, gate [batch, hidden_size], weight [hidden_size] -> y [batch, hidden_size] in int8, scale [batch] in fp32."""
    import torch

    h, g = x.float(), gate.float()
    h = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * (g * torch.sigmoid(g)) * weight.float()
    scale = h.abs().amax(-1).clamp(min=1e-10) / 127.0
    return (h / scale.unsqueeze(-1)).round().clamp(-127.0, 127.0).to(torch.int8), scale
