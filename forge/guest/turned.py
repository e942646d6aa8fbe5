"""Runs beside hostile code. How the contents of a rotation move on before a window: by sets, and within each operand.

The host does the same from the same number, on its own side of the wall (lab/observed.py).
"""

import torch

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By size in bytes: not every type can be turned."""


def moved_by(roll: int, position: int, elements: int) -> int:
    """By how many elements an operand's content is turned around its end."""
    return (roll * 40503 + position * 7919) % elements if roll and elements else 0


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a dense tensor in a row, as integers."""
    return tensor.view(-1).view(INTEGERS[tensor.itemsize])


def turned(
    contents: torch.Tensor, position: int, roll: int, places: range, *, still: bool = False
) -> list[torch.Tensor]:
    """What stands at each of some places, as bytes; `contents` [sets, elements] is one operand's of all sets.

    What is `still` goes from set to set as it is.
    """
    sets, elements = contents.shape
    first = (places.start + roll) % sets
    pieces = contents[first : first + len(places)], contents[: max(0, first + len(places) - sets)]
    split = 0 if still else moved_by(roll, position, elements)
    return [row for piece in pieces for row in piece.roll(split, 1).view(torch.uint8).unbind()]
