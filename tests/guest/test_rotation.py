"""Checks that guest and host rotate contents in the same way: among the sets, and within each operand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.guest.rotation import flat, rotated_rows
from forge.lab.observed import Case, rotated

DTYPES = (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.uint8)


def cases(sets: int, sizes: tuple[int, ...]) -> list[Case]:
    """Operands of every width, no two sets alike where there is room for it."""
    drawn = torch.Generator().manual_seed(0)
    return [
        Case(
            {"batch": 1},
            "normal",
            one,
            tuple(torch.randint(1, 100, sizes, generator=drawn).to(dtype) for dtype in DTYPES),
            (),
        )
        for one in range(sets)
    ]


@given(
    sets=st.integers(2, 9),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    rotation_offset=st.integers(0, 2**31),
    at_once=st.integers(1, 9),
    still=st.frozensets(st.integers(0, len(DTYPES) - 1)),
)
def test_both_sides_of_the_wall_move_contents_on_alike(
    sets: int, sizes: tuple[int, ...], rotation_offset: int, at_once: int, still: frozenset[int]
) -> None:
    known = cases(sets, sizes)
    for position, alike in enumerate(zip(*(case.inputs for case in known), strict=True)):
        contents = torch.stack([flat(tensor) for tensor in alike])
        for first in range(0, sets, at_once):
            places = range(first, min(first + at_once, sets))
            rows = rotated_rows(contents, position, rotation_offset, places, still=position in still)
            for place, row in zip(places, rows, strict=True):
                expected = rotated(known, place, rotation_offset, still).inputs[position]
                assert torch.equal(row, flat(expected).view(torch.uint8))


@given(sets=st.integers(2, 9), rotation_offset=st.integers(0, 2**31))
def test_what_is_still_goes_from_set_to_set_as_it_is(sets: int, rotation_offset: int) -> None:
    known = cases(sets, (7,))
    for place in range(sets):
        moved = rotated(known, place, rotation_offset, still={0})
        assert torch.equal(moved.inputs[0], known[(place + rotation_offset) % sets].inputs[0])


@pytest.mark.parametrize("rotation_offset", [0, 1, 12345])
def test_an_operand_without_elements_stays_so(rotation_offset: int) -> None:
    rows = rotated_rows(torch.empty((3, 0), dtype=torch.int16), 0, rotation_offset, range(3))
    assert [row.numel() for row in rows] == [0, 0, 0]
