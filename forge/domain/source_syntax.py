"""The syntax tree of a source file as a digest: comments, blank lines and spacing don't change it."""

import ast
from collections.abc import Iterable

from forge.domain.digest import Digest, canonical, sha256
from forge.domain.parsed_source import parse_source
from forge.domain.source_text import may_see_its_text

_NO_MEANING = ("ctx", "type_ignores")
"""Fields of a node that follow from its place, or say nothing to the interpreter."""


def syntax_sha256(untrusted_source: bytes) -> Digest | None:
    """Return the digest of a Python file's syntax tree, or None.

    None if it doesn't parse, has a bad type comment, or might do something else for another text of the same tree.
    Docstrings and type comments are part of the tree. Fields that are empty are left out, because newer versions of
    Python add some.
    """
    try:
        tree = parse_source(untrusted_source, type_comments=True)
        return None if may_see_its_text(tree) else sha256(canonical({"tree": _plain(tree)}))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _plain(node: object) -> object:
    """Return a node, a list of nodes or a constant as plain data."""
    match node:
        case ast.AST():
            fields: Iterable[tuple[str, object]] = ast.iter_fields(node)
            named = {name: _plain(one) for name, one in fields if name not in _NO_MEANING and one not in (None, [])}
            if isinstance(node, ast.Constant):
                named["value"] = [type(node.value).__name__, repr(node.value)]
            return {"node": type(node).__name__, **named}
        case list():
            return [_plain(one) for one in node]
        case _:
            return repr(node)
