"""Decides when two candidates are equal: except for comments, white space and docstrings, which kernels seldom read.

Seldom isn't never: a program can read its docstrings and its line numbers. So an equal candidate may inherit a
refusal, which its author can have checked again, but never an acceptance.
"""

import ast
import hashlib
from collections.abc import Mapping

from forge.domain.candidate import Metadata
from forge.domain.digest import Digest, digest_of, sha256
from forge.lab.sources.screen import parse_kernel
from forge.lab.triage.walk import Function

_SKIPPED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
"""Fields of syntax nodes that don't change what a program does."""
_Piece = ast.AST | bytes


def normalised_sha256(kernel: str, *, metadata: Metadata, entry_point: str) -> Digest:
    """Return a digest of what a candidate does, by its syntax: kernel.py, its build, and its entry point.

    String constants stay unchanged, also C++ text: its layout can matter to it.
    """
    tree = parse_kernel(kernel)
    body = _tree_sha256(tree) if isinstance(tree, ast.Module) else sha256(kernel.encode(errors="surrogatepass"))
    built: Mapping[str, object] | None = metadata.build.model_dump(mode="json") if metadata.build else None
    domain = {"domain": metadata.domain.model_dump(mode="json")} if metadata.domain else {}
    return digest_of(
        {
            "kernel": body,
            "entry_point": entry_point,
            "language": metadata.language,
            "built": built,
            "layouts": sorted(metadata.layouts),
            **domain,
        }
    )


def _tree_sha256(tree: ast.Module) -> Digest:
    digest = hashlib.sha256()
    stack: list[_Piece] = [tree]
    while stack:
        piece = stack.pop()
        if isinstance(piece, bytes):
            digest.update(len(piece).to_bytes(8, "big") + piece)
        else:
            stack += reversed(_pieces(piece))
    return digest.hexdigest()


def _pieces(node: ast.AST) -> list[_Piece]:
    """Return a node's name and its fields in order; lists come with their lengths, so that different trees differ."""
    found: list[_Piece] = [type(node).__name__.encode()]
    for name in node._fields:
        if name in _SKIPPED_FIELDS:
            continue
        value = getattr(node, name, None)
        if name == "body" and isinstance(node, Function | ast.ClassDef | ast.Module):
            value = _without_docstring(node.body)
        found += _value(value)
    return found


def _value(value: object) -> list[_Piece]:
    if isinstance(value, ast.AST):
        return [value]
    if isinstance(value, list):
        return [f"[{len(value)}".encode(), *(piece for item in value for piece in _value(item))]
    written = hex(value) if isinstance(value, int) and not isinstance(value, bool) else repr(value)
    return [f"{type(value).__name__} {written}".encode(errors="surrogatepass")]


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return body[1:] if is_text else body
