"""Groups a graph's operators into parts: a deterministic rule, and the check that any grouping must pass.

Rule: each heavy operator (a matrix product, a convolution, attention, a reduction) begins a part. Any other one joins
the part of its last producer, so that element-wise tails and views stay with what they follow. Operators that read
inputs and weights alone join the part of their first reader. Edges then lead only to later parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.lab.parts.graph import Graph, GraphNode

HEAVY = frozenset(
    {"linear", "mm", "bmm", "addmm", "baddbmm", "matmul", "einsum", "scaled_dot_product_attention"}
    | {"conv1d", "conv2d", "conv3d", "convolution", "conv_transpose2d", "embedding"}
    | {
        "softmax",
        "_softmax",
        "log_softmax",
        "layer_norm",
        "native_layer_norm",
        "group_norm",
        "rms_norm",
        "batch_norm",
    }
    | {"sum", "mean", "amax", "amin", "max", "min", "var", "var_mean", "topk", "sort", "cumsum", "argmax"}
    | {"max_pool2d", "max_pool2d_with_indices", "avg_pool2d", "adaptive_avg_pool2d", "norm", "linalg_vector_norm"}
)
"""Names of operators that begin a part: each reads many values for one that it writes."""


@dataclass(frozen=True)
class Part:
    """One part: its operators, what it reads from outside, and what it gives to others."""

    nodes: tuple[GraphNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class BadGrouping(Exception):
    """A grouping that is no partition into parts that can be run one after the other."""


def grouped(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """Return the names of each part's operators by the rule, in an order in which parts can be run."""
    place: dict[str, int] = {}
    floating: dict[str, GraphNode] = {}
    count = 0
    for node in graph.calls:
        producers = [place[name] for name in node.uses() if name in place]
        if _begins_a_part(node):
            place[node.name], count = count, count + 1
        elif producers:
            place[node.name] = max(producers)
        else:
            floating[node.name] = node
            continue
        _settle(node, place[node.name], floating, place)
    for name in floating:
        place[name] = count
    parts = sorted(set(place.values()))
    return tuple(tuple(node.name for node in graph.calls if place[node.name] == one) for one in parts)


def _begins_a_part(node: GraphNode) -> bool:
    return "." in node.op and node.op.split(".")[1] in HEAVY


def _settle(node: GraphNode, part: int, floating: dict[str, GraphNode], place: dict[str, int]) -> None:
    """Put the producers of a node that have no part yet into its part, and the producers of these in turn."""
    for name in node.uses():
        producer = floating.pop(name, None)
        if producer is not None:
            place[name] = part
            _settle(producer, part, floating, place)


def require_parts(graph: Graph, grouping: Sequence[Sequence[str]]) -> tuple[Part, ...]:
    """Return the parts of a grouping in running order; raise BadGrouping.

    Each operator must stand in exactly one part, and the parts must depend on each other without a cycle. Then each
    part is convex too: no path leaves it and comes back.
    """
    calls = {node.name: node for node in graph.calls}
    named = [name for part in grouping for name in part]
    unknown = sorted(set(named) - set(calls))
    if unknown or len(named) != len(set(named)) or len(named) != len(calls) or not all(grouping):
        wrong = unknown or sorted({name for name in named if named.count(name) > 1} or set(calls) - set(named))
        raise BadGrouping(f"no partition: {', '.join(wrong[:5]) or 'an empty part'}; expected each operator once")
    home = {name: number for number, part in enumerate(grouping) for name in part}
    reads = {
        number: {home[used] for name in part for used in calls[name].uses() if used in home} - {number}
        for number, part in enumerate(grouping)
    }
    order: list[int] = []
    while len(order) < len(grouping):
        ready = [one for one in reads if one not in order and reads[one] <= set(order)]
        if not ready:
            left = [one for one in reads if one not in order]
            raise BadGrouping(f"parts {left[:5]} wait for each other: expected no cycle between parts")
        order.append(ready[0])
    return tuple(_part(graph, set(grouping[number])) for number in order)


def _part(graph: Graph, members: set[str]) -> Part:
    nodes = tuple(node for node in graph.calls if node.name in members)
    inputs = dict.fromkeys(name for node in nodes for name in node.uses() if name not in members)
    read_later = {name for node in graph.calls if node.name not in members for name in node.uses()}
    returned = set(graph.returned())
    outputs = tuple(node.name for node in nodes if node.name in read_later | returned)
    return Part(nodes, tuple(inputs), outputs)
