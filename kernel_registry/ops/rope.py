from __future__ import annotations

import torch


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """X [tokens, heads, 2 * half_dim], cos, sin [tokens, half_dim] -> y like x, computed in fp32."""
    import torch

    first, second = x.float().chunk(2, -1)
    c, s = cos.float().unsqueeze(1), sin.float().unsqueeze(1)
    return torch.cat((first * c - second * s, second * c + first * s), -1).to(x.dtype)
