from __future__ import annotations

import torch


def topk_softmax(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [tokens, experts] -> weights [tokens, 8] in fp32, indices [tokens, 8] in int32, largest first."""
    import torch

    probabilities = torch.softmax(logits.float(), -1)
    weights, indices = probabilities.topk(min(8, logits.shape[-1]), -1)
    return weights, indices.to(torch.int32)
