from __future__ import annotations

import torch


def softmax(x: torch.Tensor) -> torch.Tensor:
    """X [batch, hidden_size] -> y [batch, hidden_size], row by row, computed in fp32."""
    return x.float().softmax(-1).to(x.dtype)
