"""Which elements are wrong is told exactly: whatever the mask, the sentence is true of it."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from forge.lab.judge.wrong_elements import wrong_elements

AXES = ("batch", "width")


def mask(rows: object, columns: object) -> torch.Tensor:
    found = torch.zeros(8, 100, dtype=torch.bool)
    found[rows, columns] = True  # type: ignore[index]  # a slice or a number each
    return found


@pytest.mark.parametrize(
    ("wrong", "said", "begins"),
    [
        (mask(slice(None), slice(None)), "every element is wrong", None),
        (mask(3, 7), "the other 799 are right", None),
        (mask(3, 99), "the other 799 are right", 99),
        (mask(slice(None), slice(64, None)), "wrong are the 288 elements with width >= 64, all others are right", 64),
        (mask(slice(None), slice(-3, None)), "wrong are the 24 elements with width >= 97, all others are right", 97),
        (mask(slice(1, None, 2), slice(None)), "wrong are the 400 elements with batch = 1, 3, 5, ... 7,", None),
        (mask(5, slice(10)), "wrong are the 10 elements with batch = 5 and width <= 9, all others are right", None),
        (mask(slice(2, 4), slice(20, 30)), "with 2 <= batch <= 3 and 20 <= width <= 29,", None),
        (mask([0, 3], slice(None)), "wrong are the 200 elements with batch = 0, 3, all others", None),
        (
            mask(torch.arange(8), torch.arange(64, 72)),
            "wrong are 8 of the 64 elements with 64 <= width <= 71, and",
            None,
        ),
        (mask([0, 1, 3, 4, 6], slice(None)), "wrong are 500 of 800 elements", None),
        (mask(torch.arange(8), torch.tensor([9, 3, 5, 9, 1, 2, 60, 71])), "wrong are 8 of 800 elements", None),
    ],
)
def test_a_regular_place_is_named(wrong: torch.Tensor, said: str, begins: int | None) -> None:
    found = wrong_elements(wrong, AXES)
    assert said in found.said
    assert found.begins == begins


def test_the_last_elements_in_memory_are_named() -> None:
    flat = torch.zeros(800, dtype=torch.bool)
    flat[512:] = True
    found = wrong_elements(flat.reshape(8, 100), AXES)
    assert (found.said, found.begins) == ("wrong are the last 288 of 800 elements in the order of memory", 512)
    spread = torch.ones(2, 100, dtype=torch.bool)
    spread[0, :50] = False
    found = wrong_elements(spread, AXES)
    assert (found.said, found.begins) == ("wrong are the last 150 of 200 elements in the order of memory", 50)


@given(some.lists(some.booleans(), min_size=12, max_size=12).filter(any))
def test_the_counts_of_any_mask_are_its_own(cells: list[bool]) -> None:
    wrong = torch.tensor(cells).reshape(3, 4)
    found = wrong_elements(wrong, AXES)
    numbers = [int(one) for one in re.findall(r"\d+", found.said)]
    if "every" in found.said:
        assert all(cells)
    elif "the other" in found.said:
        assert numbers[0] == 12 - sum(cells) == 11
    else:
        assert numbers[0] == sum(cells)
    if found.begins is not None and "order" not in found.said:
        by_axis = [wrong.any(dim=1 - axis).nonzero().flatten().tolist() for axis in (0, 1)]
        assert any(one == list(range(found.begins, wrong.shape[axis])) for axis, one in enumerate(by_axis))
