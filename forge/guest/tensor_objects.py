"""Runs beside hostile code. Makes the tensor objects of operands as different as those of programs are.

A program's tensor may be a view of another one or not, and may have been changed in place before. A kernel that
behaves by that would otherwise always meet the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import torch

MOST_CHANGES = 9
"""Number of changes in place that an operand seems to have had before, at most. Chosen; programs that update a tensor
in place, as a cache, count many."""


def tensor_of(storage: torch.Tensor, sizes: Sequence[int], strides: Sequence[int], offset: int) -> torch.Tensor:
    """Return a tensor of these sizes in `storage`, `offset` elements behind its start: a view of it, or its own."""
    if secrets.randbelow(2):
        tensor = storage.as_strided(sizes, strides, offset)
    else:
        own = torch.empty(0, dtype=storage.dtype, device=storage.device)
        tensor = own.set_(storage.untyped_storage(), offset, tuple(sizes), tuple(strides))
    for _ in range(secrets.randbelow(MOST_CHANGES + 1)):
        torch.autograd.graph.increment_version(tensor)
    return tensor
