"""A task's shapes: each text one shape or a range, the main one first, none twice, and not too many."""

import pytest

from forge.errors import ForgeError, UsageError
from forge.pipeline.task_shapes import MOST_SHAPES, parse_shapes
from tests.pipeline.making import made

AXES = ("batch", "hidden_size")


def batches(*texts: str) -> list[int]:
    return [shape["batch"] for shape in parse_shapes(texts, AXES)]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("batch=16,hidden_size=64", [16]),
        ("batch=1..512,hidden_size=64", [512, 64, 8, 1]),
        ("batch=1..2,hidden_size=64", [2, 1]),
        ("batch=3..5,hidden_size=64", [5, 4, 3]),
        ("batch=100..1000,hidden_size=64", [1000, 256, 128, 100]),
    ],
)
def test_a_range_stands_for_both_ends_and_sizes_in_between_the_largest_first(text: str, sizes: list[int]) -> None:
    assert batches(text) == sizes


def test_shapes_that_are_named_keep_their_order() -> None:
    assert batches("batch=16,hidden_size=64", "batch=64,hidden_size=64", "batch=1,hidden_size=64") == [16, 64, 1]


def test_several_ranges_stand_for_all_combinations() -> None:
    shapes = parse_shapes(("batch=1..64,hidden_size=64..4096",), AXES)
    assert shapes[0] == {"batch": 64, "hidden_size": 4096}
    assert len(shapes) == 4
    assert shapes[-1] == {"batch": 1, "hidden_size": 64}


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (("batch=512..1,hidden_size=64",), "expected the smaller size first"),
        (("batch=8..8,hidden_size=64",), "expected the smaller size first"),
        (("batch=0..8,hidden_size=64",), "expected 1 to 2\\^31"),
        (("batch=1..9999999999,hidden_size=64",), "expected 1 to 2\\^31"),
        (("rows=1..8,hidden_size=64",), "rows"),
        (("batch=1..8",), "lacks hidden_size"),
        (("batch=1...8,hidden_size=64",), "bad shape item"),
        (("batch=1..8,batch=2,hidden_size=64",), "given twice"),
        (("batch=8,hidden_size=64", "batch=8,hidden_size=64"), "is given twice"),
        (tuple(f"batch={n},hidden_size=64" for n in range(1, MOST_SHAPES + 2)), f"expected at most {MOST_SHAPES}"),
    ],
)
def test_a_bad_list_of_shapes_is_refused(texts: tuple[str, ...], why: str) -> None:
    with pytest.raises(ForgeError, match=why):
        parse_shapes(texts, AXES)


def test_a_task_of_one_shape_is_written_as_before_and_one_of_several_is_another_task() -> None:
    one = made(shape="batch=4,hidden_size=64")
    several = made(shape="batch=4,hidden_size=64", further_shapes=("batch=1..2,hidden_size=64",))
    assert "further_shapes" not in one.model_dump(mode="json")
    assert several.further_shapes == ({"batch": 2, "hidden_size": 64}, {"batch": 1, "hidden_size": 64})
    assert several.family == one.family
    assert several.task_id != one.task_id


def test_every_shape_must_have_room_and_lie_in_the_least_domain() -> None:
    with pytest.raises(UsageError, match="bytes of operands"):
        made(further_shapes=("batch=1048576,hidden_size=65536",))
    with pytest.raises(UsageError, match="it excludes the task's shape"):
        made(domain="batch<=8", further_shapes=("batch=16,hidden_size=64",))
