"""Walks syntax trees without recursion, since a candidate may nest as deeply as the parser accepts."""

import ast
from collections.abc import Iterator

LEAVES = frozenset({ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal})
"""Types of nodes without nodes below them; most nodes of a file have one of these."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def walk(root: ast.AST) -> Iterator[ast.AST]:
    """Yield `root` and every node below it, outermost first."""
    below = [iter((root,))]
    while below:
        node = next(below[-1], None)
        if node is None:
            below.pop()
            continue
        yield node
        if type(node) not in LEAVES:
            below.append(ast.iter_child_nodes(node))


def executed(tree: ast.Module) -> list[tuple[ast.AST, bool]]:
    """Return every node, and whether it is in a function, without code that runs only as a separate program."""
    skips = not any(isinstance(node, ast.Name) and node.id == "__name__" and _stored(node) for node in walk(tree))
    found: list[tuple[ast.AST, bool]] = []
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        found.append((node, inside))
        if type(node) in LEAVES:
            continue
        deeper = inside or isinstance(node, Function | ast.Lambda)
        below = list(ast.iter_child_nodes(node))
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
