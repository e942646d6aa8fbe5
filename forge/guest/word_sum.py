"""Runs beside hostile code. Adds up the words of a call's outputs, whose sum says which set comes next in a chain.

The host computes the same from what it reads (`word_sum` in forge/sandbox/arena.py). Each timed call takes this long
beside its own work, so it is as short as possible.
"""

import numpy as np
import torch

ONE_THREAD_WORDS = 2**17
"""Number of words that one thread adds up: a megabyte, in some 30 us. Chosen; torch wakes other threads from a fourth
of it on."""


def words(tensor: torch.Tensor) -> torch.Tensor:
    """Return a dense tensor's bytes as 64-bit integers, without up to seven at its end; fewer than eight as bytes.

    What begins at a word of its storage, as operands do, is returned as the memory itself, all else as a copy.
    """
    in_words = tensor.storage_offset() * tensor.itemsize % 8 == 0
    if tensor.nbytes % 8 == 0 and in_words:
        return tensor.view(-1).view(torch.int64)
    content = tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)  # one element may have any stride
    whole = content[: content.numel() // 8 * 8]
    if not whole.numel():
        return content
    return (whole if in_words else whole.clone()).view(torch.int64)


def total(content: torch.Tensor) -> int:
    """Return the sum of words modulo 2^64, or of bytes.

    Few words are added up by one thread: waking others takes longer, and much longer on a busy machine.
    """
    if content.numel() < ONE_THREAD_WORDS:
        return int(np.add.reduce(content.numpy(), axis=None))
    return int(content.sum().item())
