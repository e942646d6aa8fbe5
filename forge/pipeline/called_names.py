"""The names that a reference file calls, by which skills are found for it."""

import ast
import re

from forge.domain.parsed_source import parse_source

ALIASES = {
    "mm": "matmul", "bmm": "matmul", "addmm": "matmul", "einsum": "matmul", "linear": "matmul", "baddbmm": "matmul",
    "scaled_dot_product_attention": "attention", "layer_norm": "layernorm", "rms_norm": "rmsnorm",
    "log_softmax": "softmax", "logsumexp": "softmax", "group_norm": "norm", "batch_norm": "norm", "argmax": "maximum",
    "amax": "maximum", "max": "maximum", "mean": "reduction", "sum": "reduction", "var": "variance",
    "std": "variance", "cumsum": "reduction", "multinomial": "sampling", "rsqrt": "normalisation",
    "index_copy_": "scatter", "scatter_": "scatter", "index_select": "copy", "gather": "copy", "embedding": "copy",
}  # fmt: skip
"""torch's name -> the word that the library's tags have for it."""
_TESTS = ("get_inputs", "get_init_inputs")
"""Functions of a reference file that only make inputs."""
_PLAIN = frozenset(
    {
        *("torch", "nn", "functional", "super", "init", "forward", "module", "model", "parameter", "tensor", "range"),
        *("len", "int", "float", "bool", "list", "tuple", "dict", "isinstance", "print", "view", "reshape", "to"),
        *(
            "zeros",
            "ones",
            "empty",
            "full",
            "arange",
            "size",
            "shape",
            "contiguous",
            "unsqueeze",
            "squeeze",
            "float32",
        ),
    }
)
"""Names that say nothing about the operation."""


def called_names(untrusted_source: bytes) -> tuple[str, ...]:
    """Return the names that a file's code calls or multiplies by, in order; inputs are made elsewhere.

    A class is named in words, `LayerNorm` as `layernorm`; a product by `@` is `matmul`.
    """
    try:
        tree = parse_source(untrusted_source)
    except SyntaxError:
        return ()
    body = [one for one in tree.body if not (isinstance(one, ast.FunctionDef) and one.name in _TESTS)]
    found = [_name(node) for statement in body for node in ast.walk(statement)]
    words = [word for name in found if name for word in _words(name)]
    return tuple(dict.fromkeys(word for word in words if word not in _PLAIN and len(word) > 1))


def _name(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
        case ast.BinOp(op=ast.MatMult()):
            return "matmul"
        case _:
            return None


def _words(name: str) -> tuple[str, ...]:
    plain = name if "_" in name or name.islower() else re.sub(r"[0-9]d$|(?<![0-9])[0-9]+$", "", name.lower())
    known = ALIASES.get(plain)
    return (plain,) if known is None else (plain, known)
