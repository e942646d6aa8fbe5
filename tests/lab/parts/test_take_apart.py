"""Ten modules are taken apart as written beside them, the parts add up, and forty wrong programs are refused."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from forge.domain.policy import Policy
from forge.lab.parts.graph import Graph, GraphNode, Tensor
from forge.lab.parts.groups import BadGrouping, Part, grouped, require_parts
from forge.lab.parts.program import composed, signature_of
from forge.lab.parts.take_apart import Differs, NotExported, Same, compare, export
from forge.lab.parts.work import bytes_of, flops_of
from tests.candidates import isolation
from tests.lab.parts.modules import MODULES

WHOLE = {name: one for name, one in MODULES.items() if one[1] is not None}
WRONG = 40
"""Number of wrong decompositions that are tried, over all modules."""


@cache
def exported(name: str) -> Graph:
    return export(MODULES[name][0].encode(), policy=Policy(), isolation=isolation())


def parts_of(graph: Graph) -> tuple[Part, ...]:
    return require_parts(graph, grouped(graph))


def tensors_of(graph: Graph) -> dict[str, tuple[Tensor, ...]]:
    return {node.name: node.tensors for node in graph.nodes}


@dataclass(frozen=True)
class Wrong:
    what: str
    graph: Graph


def changed(graph: Graph, node: GraphNode, **fields: object) -> Graph:
    made = node.model_copy(update=fields)
    return graph.model_copy(update={"nodes": tuple(made if one is node else one for one in graph.nodes)})


def wrongs(graph: Graph) -> Iterator[Wrong]:
    """Swapped operands, a lost residual, another type, another constant."""
    known = {node.name: node for node in graph.nodes}
    for node in graph.calls:
        operands = [one for one in node.args if isinstance(one, list) and one[0] == "node"]
        name = node.op.split(".")[1] if "." in node.op else node.op
        if len(operands) == 2 and name in ("div", "sub", "matmul", "bmm", "linear"):
            yield Wrong(f"{node.name}: swapped", changed(graph, node, args=(*node.args[1::-1], *node.args[2:])))
        if len(operands) == 2 and name == "add" and not known[operands[1][1]].is_outside:
            yield Wrong(
                f"{node.name}: lost residual", changed(graph, node, args=(node.args[0], ["float", "0x0.0p+0"]))
            )
        for place, one in enumerate(node.args):
            if isinstance(one, list) and one[0] == "float":
                other = ["float", (2 * float.fromhex(one[1]) + 1).hex()]
                yield Wrong(f"{node.name}: constant", changed(graph, node, args=with_at(node.args, place, other)))
        if name in ("relu", "gelu", "tanh", "sigmoid"):
            first = known[operands[0][1]]
            halved = ["node", f"{node.name}_half"]
            half = node.model_copy(
                update={
                    "name": f"{node.name}_half",
                    "op": "aten.to.dtype",
                    "args": (["node", first.name], ["torch", "float16"]),
                }
            )
            nodes = [each for one in graph.nodes for each in ((half, one) if one is node else (one,))]
            yield Wrong(
                f"{node.name}: type", changed(graph.model_copy(update={"nodes": tuple(nodes)}), node, args=(halved,))
            )
            gone = changed(graph, node, op="aten.neg.default", kwargs={})
            yield Wrong(f"{node.name}: another operator", gone)
        if name == "linear" and len(node.args) == 3:
            yield Wrong(f"{node.name}: lost bias", changed(graph, node, args=node.args[:2]))


def with_at(args: tuple[object, ...], place: int, one: object) -> tuple[object, ...]:
    return (*args[:place], one, *args[place + 1 :])


@pytest.mark.slow
@pytest.mark.usefixtures("walls")
def test_ten_modules_have_the_parts_that_are_written_beside_them_and_the_parts_add_up() -> None:
    for name, (source, parts, different) in WHOLE.items():
        graph = exported(name)
        found = parts_of(graph)
        assert len(found) == parts, name
        assert len({signature_of(one, tensors_of(graph)) for one in found}) == different, name
        program = composed(graph, found)
        assert compare(source.encode(), [program], policy=Policy(), isolation=isolation()) == [Same()], name
        assert all(bytes_of(one, tensors_of(graph)) > 0 for one in found)
        assert sum(flops_of(one, tensors_of(graph)) for one in found) > 0
    with pytest.raises(NotExported, match="data-dependent"):
        exported("data_dependent")


@pytest.mark.slow
@pytest.mark.usefixtures("walls")
def test_a_wrong_decomposition_is_never_taken_for_the_module() -> None:
    tried = 0
    for name in ("mlp", "transformer_block", "moe_gate", "attention", "two_outputs", "shared_weights"):
        graph = exported(name)
        found = list(wrongs(graph))[: WRONG - tried]
        programs = [composed(one.graph, parts_of(one.graph)) for one in found]
        said = compare(MODULES[name][0].encode(), programs, policy=Policy(), isolation=isolation())
        assert [one.what for one, got in zip(found, said, strict=True) if not isinstance(got, Differs)] == [], name
        tried += len(found)
    assert tried == WRONG


def node(name: str, op: str, *uses: str) -> GraphNode:
    one = Tensor(dtype="float32", sizes=(2, 2))
    return GraphNode(
        name=name, op=op, origin="", args=tuple(["node", use] for use in uses), kwargs={}, tensors=(one,)
    )


SMALL = Graph(
    nodes=(
        node("x", "input"),
        node("a", "aten.mm.default", "x", "x"),
        node("b", "aten.relu.default", "a"),
        node("c", "aten.mm.default", "b", "x"),
        node("d", "aten.add.Tensor", "c", "a"),
    ),
    outputs=(["node", "d"],),
)


def test_the_rule_puts_tails_with_their_producer_and_a_wrong_grouping_is_refused() -> None:
    assert grouped(SMALL) == (("a", "b"), ("c", "d"))
    first, second = require_parts(SMALL, [("c", "d"), ("a", "b")])
    assert (first.outputs, second.inputs) == (("a", "b"), ("b", "x", "a"))
    for grouping, why in (
        ([("a", "b"), ("c",)], "no partition: d"),
        ([("a", "b"), ("b", "c", "d")], "no partition: b"),
        ([("a", "b", "z"), ("c", "d")], "no partition: z"),
        ([("a", "b"), ("c", "d"), ()], "an empty part"),
        ([("a", "c"), ("b", "d")], "wait for each other"),
        ([("b", "d"), ("a", "c")], "wait for each other"),
    ):
        with pytest.raises(BadGrouping, match=why):
            require_parts(SMALL, grouping)


def test_a_graph_out_of_order_or_with_another_argument_is_no_graph() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Graph.model_validate(
            SMALL.model_dump() | {"nodes": (*SMALL.model_dump()["nodes"], SMALL.model_dump()["nodes"][0])}
        )
    for argument in (["node", "nowhere"], ["code", "import os"], ["torch", "ops.os"], "text"):
        bad = SMALL.nodes[1].model_dump() | {"args": (argument,)}
        with pytest.raises(ValueError):  # noqa: PT011  # of pydantic, with the reason
            Graph.model_validate({"nodes": (SMALL.nodes[0].model_dump(), bad), "outputs": (["node", "a"],)})
