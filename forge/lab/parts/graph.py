"""A module's graph of operators, as a guest stated it and the host parsed it."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from forge.domain.digest import Value

MOST_NODES = 5000
"""Number of nodes of a graph, at most. A transformer of 48 blocks has about 2,000."""
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
Op = Annotated[
    str, StringConstraints(pattern=r"^(input|state|getitem|literal|[a-z_]{1,40}(\.[A-Za-z0-9_]{1,80}){1,2})$")
]
Argument = object
"""A tagged value: `["node", name]`, `["value", literal]`, `["float", hex]`, `["list", [...]]`, `["torch", name]`."""
STRIDES_FREE = {"aten.view.default": "aten.reshape.default", "aten._unsafe_view.default": "aten.reshape.default"}
"""Operator -> one that gives the same values for any strides of its input. A part that runs alone may get an
input with other strides than inside the module."""
_TORCH = re.compile(r"[a-z0-9_]{1,40}")


class Tensor(Value):
    """The type and the sizes of one tensor."""

    dtype: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,32}$")]
    sizes: tuple[Annotated[int, Field(ge=0)], ...]

    @property
    def elements(self) -> int:
        """Return the number of elements."""
        count = 1
        for size in self.sizes:
            count *= size
        return count


class GraphNode(Value):
    """One input, weight or operator."""

    name: Name
    op: Op
    origin: Annotated[str, StringConstraints(max_length=200)]
    """Name in the state dict, for a weight."""
    args: tuple[object, ...]
    kwargs: dict[Name, object]
    tensors: tuple[Tensor, ...]

    def uses(self) -> list[str]:
        """Return the names of the nodes that this one reads, in order, each once."""
        found = [name for one in (*self.args, *self.kwargs.values()) for name in nodes_in(one)]
        return list(dict.fromkeys(found))

    @property
    def is_outside(self) -> bool:
        """Return whether it is an input or a weight."""
        return self.op in ("input", "state")


class Graph(Value):
    """A module's nodes in an order in which each reads earlier ones, and what it returns."""

    nodes: Annotated[tuple[GraphNode, ...], Field(max_length=MOST_NODES)]
    outputs: Annotated[tuple[object, ...], Field(min_length=1, max_length=16)]

    @model_validator(mode="after")
    def _is_in_order(self) -> "Graph":
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen or not set(node.uses()) <= seen:
                raise ValueError(f"node {node.name!r} stands twice, or reads what isn't there yet")
            seen.add(node.name)
        if not {name for one in self.outputs for name in nodes_in(one)} <= seen:
            raise ValueError("it returns what isn't there")
        return self

    @property
    def calls(self) -> tuple[GraphNode, ...]:
        """Return the operators."""
        return tuple(node for node in self.nodes if not node.is_outside)

    def returned(self) -> list[str]:
        """Return the names of the nodes that are returned."""
        return [name for one in self.outputs for name in nodes_in(one)]


def nodes_in(argument: Argument) -> Iterator[str]:
    """Yield the names of the nodes in an argument; raise ValueError for one that isn't a tagged value."""
    match argument:
        case ["node", str(name)]:
            yield name
        case ["list", list(items) | tuple(items)]:
            for one in items:
                yield from nodes_in(one)
        case ["value", None | bool() | int() | str()] | ["float", str()] | ["device", "cpu"]:
            return
        case ["torch", str(name)] if _TORCH.fullmatch(name):
            return
        case _:
            raise ValueError(f"not an argument: {str(argument)[:100]}")


def written(argument: Argument, names: dict[str, str]) -> str:
    """Return an argument as Python text, with each node under its name in `names`."""
    match argument:
        case ["node", str(name)]:
            return names[name]
        case ["list", list(items) | tuple(items)]:
            return "[" + ", ".join(written(one, names) for one in items) + "]"
        case ["float", str(text)]:
            return f"float.fromhex({float.fromhex(text).hex()!r})"
        case ["value", None | bool() | int() | str() as value]:
            return repr(value)
        case ["torch", str(name)] if _TORCH.fullmatch(name):
            return f"torch.{name}"
        case ["device", "cpu"]:
            return "torch.device('cpu')"
        case _:
            raise ValueError(f"not an argument: {str(argument)[:100]}")


def statement(node: GraphNode, names: dict[str, str]) -> str:
    """Return the line of Python that computes an operator."""
    given = [written(one, names) for one in node.args]
    given += [f"{name}={written(one, names)}" for name, one in node.kwargs.items()]
    if node.op == "literal":
        return f"{names[node.name]} = torch.tensor({given[0]}, dtype={given[2]}).reshape({given[1]})"
    if node.op == "getitem":
        return f"{names[node.name]} = {given[0]}[{given[1]}]"
    op = STRIDES_FREE.get(node.op, node.op)
    return f"{names[node.name]} = torch.ops.{op}({', '.join(given)})"


def names_of(nodes: Sequence[GraphNode]) -> dict[str, str]:
    """Return a short name for each node's name: v0 for the first node, v1 for the second, and so on."""
    return {node.name: f"v{place}" for place, node in enumerate(nodes)}
