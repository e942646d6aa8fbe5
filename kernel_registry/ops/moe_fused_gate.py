from __future__ import annotations

import torch


def moe_fused_gate(logits: torch.Tensor, bias: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [tokens, experts], bias [experts] fp32 -> weights [tokens, 8] fp32, indices [tokens, 8] int32.

    Ordered by sigmoid(logits) + bias, largest first.
    """
    import torch

    scores = torch.sigmoid(logits.float())
    indices = (scores + bias).topk(min(8, logits.shape[-1]), -1).indices
    chosen = scores.gather(-1, indices)
    return chosen / (chosen.sum(-1, keepdim=True) + 1e-20) * scale, indices.to(torch.int32)
