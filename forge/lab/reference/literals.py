"""Reads Python literals that a guest wrote down, as syntax trees: nothing evaluates them on the host."""

import ast

from forge.domain.parsed_source import parse_source


def parse_literal(untrusted_text: str) -> ast.expr:
    """Return a literal's tree; raise ValueError or SyntaxError for any other text."""
    tree = parse_source(untrusted_text, mode="eval").body
    _require_literal(tree)
    return tree


def count_places(tree: ast.expr) -> int:
    """Return how many tensors belong into a literal: each `...` in it stands for one."""
    match tree:
        case ast.Constant(value=value):
            return int(value is ...)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
            return sum(map(count_places, parts))
        case _:
            return 0


def require_form(untrusted_text: str, results: int) -> None:
    """Raise ValueError or SyntaxError unless a text nests one `...` for each result in tuples and dictionaries."""
    tree = parse_source(untrusted_text, mode="eval").body
    _require_places_alone(tree)
    if count_places(tree) != results:
        raise ValueError(f"its {results} results don't fit the form {untrusted_text[:100]}")


def _require_places_alone(tree: ast.expr) -> None:
    match tree:
        case ast.Constant(value=value) if value is ...:
            return
        case ast.Tuple(elts=parts):
            inner = parts
        case ast.Dict(keys=keys, values=parts) if all(map(_is_name, keys)):
            inner = parts
        case _:
            raise ValueError(f"its results are nested in {ast.unparse(tree)[:100]}: expected tuples and dictionaries")
    for part in inner:
        _require_places_alone(part)


def _is_name(tree: ast.expr | None) -> bool:
    return isinstance(tree, ast.Constant) and isinstance(tree.value, str) and tree.value.isidentifier()


def _require_literal(tree: ast.expr) -> None:
    """Raise ValueError unless a tree is a literal."""
    match tree:
        case ast.Constant() | ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return  # the empty set has no other literal
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                _require_literal(part)
        case ast.Set(elts=parts):
            for part in parts:
                _require_key(part)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                _require_key(key)
                _require_literal(value)
        case _:
            _require_number(tree)


def _require_key(tree: ast.expr | None) -> None:
    """Raise ValueError unless a tree is a literal that can be a key; `**` in a dictionary has no key."""
    if isinstance(tree, ast.Tuple):
        for part in tree.elts:
            _require_key(part)
    elif tree is None or isinstance(tree, ast.List | ast.Dict | ast.Set | ast.Call):
        raise ValueError("a key of a dictionary or an element of a set can't be hashed")
    else:
        _require_literal(tree)


def _require_number(tree: ast.expr) -> None:
    """Raise ValueError unless a tree is a number, one with a sign, or a real and an imaginary number added."""
    match tree:
        case ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=ast.Constant(value=complex())) if _is_real(left):
            return
        case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=ast.Constant(value=value)) if type(value) in _NUMBERS:
            return
        case _:
            raise ValueError(f"{ast.unparse(tree)[:100]} is no literal")


def _is_real(tree: ast.expr) -> bool:
    """Return True for an integer or a float, with a sign or without."""
    number = tree.operand if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.UAdd | ast.USub) else tree
    return isinstance(number, ast.Constant) and type(number.value) in (int, float)


_NUMBERS = (int, float, complex)
"""Types that a sign may stand before. A truth value has none."""
