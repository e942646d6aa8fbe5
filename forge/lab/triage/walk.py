"""Syntax trees without recursion: a candidate may nest as deeply as the parser takes."""

import ast
from collections.abc import Iterator

LEAVES = frozenset({ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal})
"""Most nodes of a file, and nothing is below them."""
Function = ast.FunctionDef | ast.AsyncFunctionDef
_CONTEXTS = frozenset({ast.Load, ast.Store, ast.Del})


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below, in the order of the source; without the contexts, which say nothing."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and type(value) not in _CONTEXTS:
            found.append(value)
    return found


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Every node below `root` and itself, outermost first."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if type(node) not in LEAVES:
            stack += reversed(children(node))


def executed(tree: ast.Module) -> list[tuple[ast.AST, bool]]:
    """Every node with whether it stands in a function, but for what only runs as a program of its own."""
    skips = not any(isinstance(node, ast.Name) and node.id == "__name__" and _stored(node) for node in walk(tree))
    found: list[tuple[ast.AST, bool]] = []
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        found.append((node, inside))
        if type(node) in LEAVES:
            continue
        deeper = inside or isinstance(node, Function | ast.Lambda)
        below = children(node)
        if skips and isinstance(node, ast.If) and _asks_for_main(node.test):
            below = list(node.orelse)
        stack += [(child, deeper) for child in reversed(below)]
    return found


def _asks_for_main(test: ast.expr) -> bool:
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return named and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def _stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)
