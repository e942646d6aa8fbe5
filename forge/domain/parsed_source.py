"""Parses Python text that isn't trusted, in time that its length allows and with one kind of error.

CPython's parser takes the square of the length of some tokens, so they are refused before. Every module of Forge that
reads a foreign source as Python calls `parse_source`, and none calls `ast.parse` itself.
"""

import ast
import io
import tokenize
import warnings
from threading import Lock
from typing import Literal, overload

from forge.domain.long_tokens import too_long

_ONE_AT_A_TIME = Lock()
"""Lock of CPython 3.11's parser, which counts the depth of one text for all threads. If another thread parses while
a tree is built, it raises SystemError."""


class LongToken(SyntaxError):
    """A text has a token that is longer than any that people write; the message says which."""


@overload
def parse_source(
    untrusted: str | bytes, *, filename: str = "<unknown>", type_comments: bool = False
) -> ast.Module: ...
@overload
def parse_source(untrusted: str | bytes, *, mode: Literal["eval"]) -> ast.Expression: ...


def parse_source(
    untrusted: str | bytes,
    *,
    filename: str = "<unknown>",
    mode: Literal["exec", "eval"] = "exec",
    type_comments: bool = False,
) -> ast.AST:
    """Return the syntax tree of a Python text; raise SyntaxError for any other text.

    A token that is too long is a LongToken. Bytes have the encoding that their first lines declare.
    """
    try:
        if long := too_long(untrusted if isinstance(untrusted, str) else _decoded(untrusted)):
            raise LongToken(long)
        # The parser's warnings concern only the text's author. All threads share the filters of warnings.
        with _ONE_AT_A_TIME, warnings.catch_warnings(action="ignore"):
            return ast.parse(untrusted, filename, mode, type_comments=type_comments)
    except (ValueError, LookupError, RecursionError, MemoryError) as error:  # the parser's stack is its memory
        raise SyntaxError(str(error) or "nested too deeply") from error


def _decoded(source: bytes) -> str:
    return source.decode(tokenize.detect_encoding(io.BytesIO(source).readline)[0])


def defines(tree: ast.Module, name: str) -> bool:
    """Return whether the module assigns to this name."""
    return any(
        isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == name for one in node.targets)
        for node in tree.body
    )
