"""Which results a launcher's memory can stand for, and which of a baseline's may be filled with poison."""

import pytest
import torch

from forge.domain.plan import LaunchPlan
from forge.guest.spans import ends, fresh, lie_apart
from forge.guest.wire import MOST_IN_A_PLAN

X = torch.zeros(4, 6)
Y = torch.ones(4, 6)


@pytest.mark.parametrize(
    ("outputs", "apart"),
    [
        ([Y], True),
        ([Y[:2], Y[2:]], True),
        ([], True),
        ([Y[:0], Y], True),
        ([Y.t()], False),
        ([Y[:, :3]], False),
        ([Y, Y], False),
        ([Y, Y[-1]], False),
        ([X], False),
        ([Y, X[1:]], False),
    ],
)
def test_results_lie_apart_if_each_is_dense_in_memory_of_its_own(outputs: list[torch.Tensor], apart: bool) -> None:
    assert lie_apart(outputs, [X]) is apart


def test_what_is_poisoned_is_dense_and_nobody_elses() -> None:
    constant, one, other = torch.zeros(3), torch.ones(4), torch.ones(5)
    assert [id(each) for each in fresh([[one, X[1:], constant], [Y.t(), other]], [X, constant])] == [
        id(one),
        id(other),
    ]


def test_a_guest_lists_no_more_than_the_host_takes() -> None:
    listed = LaunchPlan.model_json_schema()
    limits = {listed["properties"][name]["maxItems"] for name in ("steps", "workspaces")}
    place = listed["$defs"]["Place"]["properties"]["index"]["maximum"]
    assert limits | {place + 1} == {MOST_IN_A_PLAN}


@pytest.mark.parametrize(
    ("output", "last"),
    [
        (Y, 23),
        (Y.t(), 23),
        (Y[:, :3], 20),
        (Y[1:, ::2], 22),
        (Y[0, :1].expand(1 << 40), 0),
        (Y[:, :1].expand(4, 1 << 40), 18),
    ],
)
def test_the_ends_of_an_output_lie_in_its_memory(output: torch.Tensor, last: int) -> None:
    start = Y.data_ptr()
    assert ends(output) == (output.data_ptr(), start + last * Y.element_size() + Y.element_size() - 1)
