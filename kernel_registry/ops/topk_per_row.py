from __future__ import annotations

import torch


def topk_per_row(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X [batch, vocab_size] -> values [batch, 8] as x, indices [batch, 8] in int32, largest first."""
    import torch

    values, indices = x.topk(min(8, x.shape[-1]), -1)
    return values, indices.to(torch.int32)
