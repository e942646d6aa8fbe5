"""Runs beside hostile code. Rotates the operands' contents before a window: among the sets, and within each operand.

The host computes the same rotation from the same number, on its own side of the wall (lab/observed.py).
"""

import torch

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer types by size in bytes, since not every type can be rotated."""


def element_shift(rotation_offset: int, position: int, elements: int) -> int:
    """Return by how many elements an operand's content is rotated."""
    return (rotation_offset * 40503 + position * 7919) % elements if rotation_offset and elements else 0


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of a dense tensor as one row of integers."""
    return tensor.view(-1).view(INTEGERS[tensor.itemsize])


def rotated_rows(
    contents: torch.Tensor, position: int, rotation_offset: int, places: range, *, still: bool = False
) -> list[torch.Tensor]:
    """Return the rotated bytes of an operand for the sets in `places`; `contents` is [sets, elements], for all sets.

    With `still`, contents move from set to set without a rotation of their elements.
    """
    sets, elements = contents.shape
    first = (places.start + rotation_offset) % sets
    pieces = contents[first : first + len(places)], contents[: max(0, first + len(places) - sets)]
    split = 0 if still else element_shift(rotation_offset, position, elements)
    return [row for piece in pieces for row in piece.roll(split, 1).view(torch.uint8).unbind()]
