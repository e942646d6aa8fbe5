"""Finds the constants of a template's kernel.py, and writes other values in their place.

A constant is an assignment of a literal at module level, or a `#define` or `constexpr` line of the text that is
compiled. Nothing is executed: the syntax tree says where a literal stands, and only these bytes change.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from forge.domain.authoring import ParameterValue
from forge.domain.parsed_source import parse_source
from forge.errors import UsageError

WORD = re.compile(r"[A-Za-z0-9_.+-]{1,100}")
"""Form of a string that may stand in compiled text: one word, so that it can't hold a statement."""
_DEFINED = re.compile(
    rb"^[ \t]*+(?:#define[ \t]++(\w+)[ \t]++|(?:static[ \t]++)?constexpr[ \t]++\w+[ \t]++(\w+)[ \t]*+=[ \t]*+)"
    rb"([\w.+-]++)[ \t]*+;?[ \t]*+(?://[^\n]*)?\r?$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Tunable:
    """A literal of kernel.py: its value, its place in bytes, and whether it stands in compiled text."""

    value: ParameterValue
    begin: int
    end: int
    compiled: bool

    def written(self, value: ParameterValue) -> bytes:
        """Return a value as it is written at this place; raise UsageError if it can't stand there."""
        if not self.compiled:
            return repr(value).encode()
        if isinstance(value, str) and not WORD.fullmatch(value):
            raise UsageError(f"bad value {value!r} for compiled text: expected one word")
        return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def constants_of(kernel: str, text_name: str | None) -> dict[str, Tunable]:
    """Return the constants by name. `text_name` names the module-level string that is compiled, if one is.

    A name that is bound twice is left out, since it isn't known which one counts. Raise UsageError if the file
    doesn't parse.
    """
    try:
        tree = parse_source(kernel, filename="kernel.py")
    except SyntaxError as error:
        raise UsageError(f"the template's kernel.py doesn't parse: {error}; expected Python") from error
    content, starts = kernel.encode(), _line_starts(kernel)
    found: dict[str, list[Tunable]] = {}
    for node in tree.body:
        name, literal = _assigned(node)
        if literal is None or name is None:
            continue
        begin, end = _span(literal, starts)
        value = _literal(literal)
        if value is not None and name != text_name:
            found.setdefault(name, []).append(Tunable(value, begin, end, compiled=False))
        elif name == text_name:
            for inner, constant in _defined(content, begin, end):
                found.setdefault(inner, []).append(constant)
    bound = _times_bound(tree)
    return {name: places[0] for name, places in found.items() if len(places) == 1 and bound[name] <= 1}


def with_values(kernel: str, constants: Mapping[str, Tunable], values: Mapping[str, ParameterValue]) -> str:
    """Return kernel.py with these values in place of the constants'; equal values keep their bytes."""
    content = kernel.encode()
    for name, value in sorted(values.items(), key=lambda one: -constants[one[0]].begin):
        constant = constants[name]
        if type(value) is not type(constant.value) or value != constant.value:
            content = content[: constant.begin] + constant.written(value) + content[constant.end :]
    return content.decode()


def _assigned(node: ast.stmt) -> tuple[str | None, ast.expr | None]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name, value
    return None, None


def _times_bound(tree: ast.Module) -> Counter[str]:
    """Return how many statements of the module bind each name, at any depth outside functions."""
    return Counter(
        node.id
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )


def _literal(node: ast.expr) -> ParameterValue | None:
    match node:
        case ast.Constant(value=value) if isinstance(value, bool | int | float | str):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if isinstance(value, int | float):
            return -value
    return None


def _line_starts(kernel: str) -> list[int]:
    """Return the offset in bytes of each line, as the syntax tree counts lines."""
    starts = [0]
    for line in kernel.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _defined(kernel: bytes, begin: int, end: int) -> list[tuple[str, Tunable]]:
    """Return the constants in the compiled text, which lies between two offsets of kernel.py."""
    return [
        ((match[1] or match[2]).decode(), Tunable(_word(match[3].decode()), *match.span(3), compiled=True))
        for match in _DEFINED.finditer(kernel, begin, end)
    ]


def _word(text: str) -> ParameterValue:
    """Return a word of C++ as a value: a number, true or false, or the word itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
