from __future__ import annotations

import torch


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Logits [tokens, vocab_size], labels [tokens] in int64 -> loss [tokens] in fp32."""
    h = logits.float()
    h = h - h.amax(-1, keepdim=True)
    return h.exp().sum(-1).log() - h.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
