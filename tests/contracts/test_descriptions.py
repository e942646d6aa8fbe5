"""Every operation of the catalogue describes itself: its reference loads alone and has the named entry."""

import ast

import pytest

from forge.domain.digest import canonical, sha256
from forge.operations import OPERATIONS
from forge.operations.description import description, reference_bytes
from forge.operations.operation import Operation


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_the_description_names_the_published_references_function_and_arguments(operation: Operation) -> None:
    document = description(operation)
    module = ast.parse(reference_bytes(operation))
    (entry,) = (node for node in module.body if isinstance(node, ast.FunctionDef))
    assert document["entry"] == entry.name
    assert len(entry.args.args) == len(operation.inputs) + len(operation.scalars)
    assert document["unfit"] is None
    assert sha256(canonical(document))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_every_axis_of_an_output_follows_from_an_input(operation: Operation) -> None:
    """A call's outputs must be allocated from its inputs alone."""
    named = {axis for spec in operation.inputs for axis in spec.axes}
    assert {axis for spec in operation.returned for axis in spec.axes if not axis.isdecimal()} <= named
