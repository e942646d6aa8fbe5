"""Runs beside hostile code. Says where tensors lie in memory, and whether a launcher's tensors could lie there."""

from collections.abc import Sequence

import torch

Tensors = Sequence[torch.Tensor]


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return address and size in bytes of a dense tensor."""
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


def lie_apart(outputs: Tensors, inputs: Tensors) -> bool:
    """Return whether results are dense and in separate memory, as a launcher's are.

    A reference file's results needn't be.
    """
    if not all(tensor.is_contiguous() for tensor in outputs):
        return False
    spans = [span(tensor) for tensor in outputs if tensor.numel()]
    others = [span(tensor) for tensor in inputs if tensor.numel()]
    return not any(
        _overlap(one, other) for place, one in enumerate(spans) for other in (*spans[place + 1 :], *others)
    )


def fresh(outputs: Sequence[Tensors], others: Tensors) -> list[torch.Tensor]:
    """Return the dense outputs that share no memory with the others.

    A reference file may return an input or a constant.
    """
    known = {one.untyped_storage().data_ptr() for one in others}
    dense = (one for taken in outputs for one in taken if one.is_contiguous())
    return [one for one in dense if one.untyped_storage().data_ptr() not in known]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]
