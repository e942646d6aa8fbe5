"""Writes programs from a graph: the reference of each part, and the module put together from them.

No reference is written by a model: each line is one operator of the graph, with the module's own sizes and constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forge.domain.digest import Digest, digest_of
from forge.lab.parts.graph import Graph, Tensor, names_of, statement, written
from forge.lab.parts.groups import Part


@dataclass(frozen=True)
class Composed:
    """A program `composed(inputs, state)` that stands for the whole module."""

    source: str
    state: tuple[str, ...]
    """Names in the state dict of the weights that it reads."""


def body_of(part: Part) -> str:
    """Return the body of a part's function, whose parameters are in_0, in_1, ..."""
    names = {name: f"in_{place}" for place, name in enumerate(part.inputs)} | names_of(part.nodes)
    lines = [statement(node, names) for node in part.nodes]
    lines.append(f"return ({', '.join(names[name] for name in part.outputs)},)")
    return "".join(f"    {line}\n" for line in lines)


def signature_of(part: Part, tensors: dict[str, tuple[Tensor, ...]]) -> Digest:
    """Return a digest that equal work shares: operators, constants, and the types and sizes of all inputs.

    `tensors` has the outputs of each node by its name.
    """
    given = [[one.model_dump(mode="json") for one in tensors[name]] for name in part.inputs]
    return digest_of({"body": body_of(part), "inputs": given})


def reference_of(part: Part, tensors: dict[str, tuple[Tensor, ...]]) -> str:
    """Return a reference file for one part, in the form that `forge task create --reference` takes.

    `tensors` has the outputs of each node by its name.
    """
    parameters = ", ".join(f"in_{place}" for place in range(len(part.inputs)))
    body = body_of(part)
    if len(part.outputs) == 1:
        body = body.replace("    return (", "    return ", 1).replace(",)\n", "\n", 1) if ",)" in body else body
    drawn = "".join(f"        {_drawn(tensors[name][0])},\n" for name in part.inputs)
    return (
        '"""One part of a module, made from its graph of operators."""\n\nimport torch\n\n\n'
        f"def part({parameters}):\n{body}\n\ndef get_inputs():\n    return [\n{drawn}    ]\n"
    )


def composed(graph: Graph, parts: Sequence[Part]) -> Composed:
    """Return the program that runs the parts' functions one after the other."""
    functions = []
    for place, part in enumerate(parts):
        parameters = ", ".join(f"in_{one}" for one in range(len(part.inputs)))
        functions.append(f"def part_{place}({parameters}):\n{body_of(part)}\n\n")
    steps, returned = steps_of(graph, parts, lambda place, given: f"part_{place}({', '.join(given)})")
    body = f"{steps}    return ({', '.join(returned)},)\n"
    source = f"import torch\n\n\n{''.join(functions)}def composed(inputs, state):\n{body}"
    state = [node for node in graph.nodes if node.op == "state"]
    return Composed(source, tuple(dict.fromkeys(node.origin for node in state)))


def steps_of(graph: Graph, parts: Sequence[Part], call: Callable[[int, list[str]], str]) -> tuple[str, list[str]]:
    """Return the body of a function of `inputs` and `state` that runs all parts, and its results as expressions.

    `call` returns the call of the part at a place with tensors of these names.
    """
    names = {node.name: f"g_{place}" for place, node in enumerate(graph.nodes)}
    inputs = [node for node in graph.nodes if node.op == "input"]
    lines = [f"{names[node.name]} = inputs[{place}]" for place, node in enumerate(inputs)]
    lines += [f"{names[node.name]} = state[{node.origin!r}]" for node in graph.nodes if node.op == "state"]
    for place, part in enumerate(parts):
        taken = ", ".join(names[name] for name in part.outputs)
        lines.append(f"({taken},) = {call(place, [names[name] for name in part.inputs])}")
    return "".join(f"    {line}\n" for line in lines), [written(one, names) for one in graph.outputs]


def _drawn(tensor: Tensor) -> str:
    sizes = list(tensor.sizes)
    if tensor.dtype == "bool":
        return f"torch.rand({sizes}) < 0.5"
    if tensor.dtype.startswith(("int", "uint")):
        return f"torch.zeros({sizes}, dtype=torch.{tensor.dtype})"
    return f"torch.randn({sizes}, dtype=torch.{tensor.dtype})"
