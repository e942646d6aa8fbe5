"""Each contender that ships fits the operation that it names."""

import ast

import pytest

from forge.contenders.description import ENTRY
from forge.contenders.discovery import Described, find_contenders
from forge.operations import OPERATIONS

SHIPPED = find_contenders().contenders


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: f"{one.id}-{one.call.operation}")
def test_a_contender_names_an_operation_its_axes_and_its_types(one: Described) -> None:
    if one.call.operation == "*":
        assert not one.call.axes
        return
    operation = OPERATIONS[one.call.operation]
    assert one.call.axes.keys() <= set(operation.axes)
    assert set(one.call.dtypes) & set(operation.dtypes)


@pytest.mark.parametrize(
    "one", [one for one in SHIPPED if one.call.call], ids=lambda one: f"{one.id}-{one.call.operation}"
)
def test_a_contender_takes_the_operands_and_scalars_of_its_operation(one: Described) -> None:
    operation = OPERATIONS[one.call.operation]
    functions = [node for node in ast.parse(one.call.call).body if isinstance(node, ast.FunctionDef)]
    (entry,) = (node for node in functions if node.name == ENTRY)
    assert len(entry.args.args) == len(operation.inputs) + len(operation.scalars)


def test_each_library_says_its_licence_and_where_it_comes_from() -> None:
    for one in SHIPPED:
        assert one.library.licence
        assert one.library.homepage.startswith("https://")
