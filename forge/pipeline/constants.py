"""Writes other numbers in place of those that a reference file assigns to names, such as `batch_size = 4096`.

Nothing is executed: the syntax tree says where a value stands, and only these bytes change.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from forge.errors import UnknownName, UsageError

_SETTING = re.compile(r"([A-Za-z_]\w{0,63})=(-?\d{1,18}(?:\.\d{1,18})?)")


def with_constants(source: bytes, untrusted_texts: Sequence[str]) -> bytes:
    """Return the file with numbers like `batch_size=16` in place of its own.

    Raise UsageError for a bad text, a repeated name, and one that the file doesn't assign exactly once.
    """
    numbers: dict[str, str] = {}
    for text in untrusted_texts:
        match = _SETTING.fullmatch(text)
        if match is None:
            raise UsageError(f"constant {text!r}: expected NAME=NUMBER, such as batch_size=16")
        if match[1] in numbers:
            raise UsageError(f"constant {match[1]!r} is given twice: expected one --constant for each name")
        numbers[match[1]] = match[2]
    if not numbers:
        return source
    places = _places(source)
    for name in numbers:
        if name not in places:
            raise UnknownName("constant of the reference", name, sorted(places))
    for name in sorted(numbers, key=lambda one: -places[one][0]):
        begin, end = places[name]
        source = source[:begin] + numbers[name].encode() + source[end:]
    return source


def _places(source: bytes) -> dict[str, tuple[int, int]]:
    """Return where the value of each name stands that the module assigns once, and from numbers alone."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"the reference doesn't parse: {error or 'nested too deeply'}; expected Python") from error
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[str, tuple[int, int]] = {}
    for name, value in _assigned(tree):
        assert value.end_lineno is not None
        assert value.end_col_offset is not None
        begin = starts[value.lineno - 1] + value.col_offset
        found[name] = begin, starts[value.end_lineno - 1] + value.end_col_offset
    return {name: place for name, place in found.items() if _is_bound_once(tree, name)}


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that the module gives a number, alone or as in `depth, height = 16, 32`."""
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = list(zip(targets, values, strict=False)) if len(targets) == len(values) else []
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                pairs = []
        for target, value in pairs:
            if isinstance(target, ast.Name) and _is_number(value):
                yield target.id, value


def _is_number(node: ast.expr) -> bool:
    """Return whether an expression is a number, or computes one from numbers alone."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
    return False


def _is_bound_once(tree: ast.Module, name: str) -> bool:
    """Return whether one statement of the module binds the name, and no function declares it global."""
    bound = [
        node
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return len(bound) == 1 and not any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(tree))
