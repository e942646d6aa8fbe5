"""Counts what each part computes and moves, by the formula of its operators, to say which share of a module it is."""

from collections.abc import Sequence

from forge.lab.parts.graph import GraphNode, Tensor, nodes_in
from forge.lab.parts.groups import Part

BYTES = {
    **dict.fromkeys(("float64", "int64"), 8),
    **dict.fromkeys(("float32", "int32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("int8", "uint8", "bool"), 1),
}
"""Element type -> bytes. A type that isn't listed counts four."""
Known = dict[str, tuple[Tensor, ...]]


def bytes_of(part: Part, tensors: Known) -> int:
    """Return the bytes that a part must read and write once each."""
    names = (*part.inputs, *part.outputs)
    return sum(one.elements * BYTES.get(one.dtype, 4) for name in names for one in tensors[name])


def flops_of(part: Part, tensors: Known) -> int:
    """Return the arithmetic of a part: two for each product that is added, one for each element otherwise."""
    return sum(_flops(node, tensors) for node in part.nodes)


def _flops(node: GraphNode, tensors: Known) -> int:
    made = sum(one.elements for one in node.tensors)
    if "." not in node.op:
        return 0
    given = [tensors[name][0] for one in node.args for name in _direct(one) if tensors[name]]
    match node.op.split(".")[1]:
        case "linear" | "mm" | "bmm" | "matmul" if given:
            return 2 * made * given[0].sizes[-1]
        case "addmm" | "baddbmm" if len(given) > 1:
            return 2 * made * given[1].sizes[-1]
        case "conv1d" | "conv2d" | "conv3d" | "convolution" if len(given) > 1:
            kernel = given[1]
            return 2 * made * (kernel.elements // max(1, kernel.sizes[0]))
        case "scaled_dot_product_attention" if len(given) > 1:
            return 4 * given[0].elements * given[1].sizes[-2]
        case "view" | "reshape" | "permute" | "transpose" | "unsqueeze" | "squeeze" | "expand" | "slice" | "split":
            return 0
        case _:
            return max(made, *(one.elements for one in given), 0) if given else made


def _direct(argument: object) -> Sequence[str]:
    return list(nodes_in(argument))
