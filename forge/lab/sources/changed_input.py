"""Finds the line of a function that writes to one of its arguments in place."""

import ast
from collections.abc import Iterator

VIEWS = frozenset({"view", "flatten", "squeeze", "unsqueeze", "t", "transpose", "permute", "detach", "data", "T"})
"""Methods and attributes whose result may lie in the memory of the tensor that has them."""


def changed_input(function: ast.FunctionDef) -> tuple[int, str] | None:
    """Return the first line that writes in place to an argument or to a view of it, and the argument's name.

    A name that is bound anew to anything but a view of an argument counts as no argument at all.
    """
    arguments = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    owners = _owners(function, arguments)
    found = [(line, owners[name]) for line, name in _writes(function) if name in owners]
    return min(found, default=None)


def _owners(function: ast.FunctionDef, arguments: list[str]) -> dict[str, str]:
    """Return name -> the argument whose memory it means wherever it stands."""
    owners = {name: name for name in arguments}
    bound: dict[str, list[str | None]] = {}
    for node in ast.walk(function):
        for target, value in _bindings(node):
            bound.setdefault(target, []).append(_viewed(value))
    for name, values in bound.items():
        meant = {owners.get(one or "") for one in values}
        if name not in owners and len(meant) == 1:
            owners[name] = next(iter(meant)) or ""
        elif name in owners and meant != {name}:
            owners[name] = ""
    return {name: owner for name, owner in owners.items() if owner}


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that a statement binds, with its value; None for a value of several names."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple | ast.List):
                pairs = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else []
                values = pairs if len(pairs) == len(target.elts) else [None] * len(target.elts)
                yield from (
                    (one.id, value)
                    for one, value in zip(target.elts, values, strict=True)
                    if isinstance(one, ast.Name)
                )
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
        yield node.target.id, None


def _viewed(value: ast.expr | None) -> str | None:
    """Return the name whose memory a value may lie in; None if the value is new."""
    while True:  # no recursion: a source may view a thousand times
        match value:
            case ast.Name(id=name):
                return name
            case ast.Subscript(value=viewed):
                value = viewed
            case ast.Call(func=ast.Attribute(attr=attr, value=viewed)) | ast.Attribute(attr=attr, value=viewed):
                if attr not in VIEWS:
                    return None
                value = viewed
            case _:
                return None


def _writes(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Yield line and name of each write in place."""
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.AugAssign):
            targets = [node.target]
        elif isinstance(node, ast.Assign):
            targets = [one for one in node.targets if isinstance(one, ast.Subscript)]
        elif isinstance(node, ast.Call):
            targets = [one.value for one in node.keywords if one.arg == "out"]
            if isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_") and node.func.attr[0] != "_":
                targets.append(node.func.value)
        for target in targets:
            name = _viewed(target)
            if name is not None:
                yield target.lineno, name
