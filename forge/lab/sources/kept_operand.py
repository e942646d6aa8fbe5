"""Finds the line of a class that computes something from weights or inputs once, and keeps it on its object."""

import ast

ABOUT_FORM = frozenset({"shape", "device", "dtype", "ndim", "size", "numel", "dim", "stride", "element_size"})
"""Attributes that tell a tensor's form. What is made of these alone holds for any contents."""
NEW_MEMORY = frozenset({"empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like"})
"""Functions of torch whose results hold nothing of their operands' contents: a workspace."""


def kept_operand(method: ast.FunctionDef) -> int | None:
    """Return the first line that keeps, under a condition on the same attribute, what it computes from an operand.

    An operand is an argument, or an attribute whose name has `weight` or `bias` in it.
    """
    arguments = [one.arg for one in method.args.args]
    if not arguments:
        return None
    found = [
        assigned.lineno
        for condition in ast.walk(method)
        if isinstance(condition, ast.If)
        for assigned in condition.body
        if isinstance(assigned, ast.Assign)
        for target in assigned.targets
        if isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == arguments[0]
        and _names(condition.test, target.attr)
        and _reads_contents(assigned.value, frozenset(arguments[1:]))
    ]
    return min(found, default=None)


def computed_before(module: ast.Module, entry: str) -> int | None:
    """Return the first line of a class's constructor that keeps what it computes from weights; None without one.

    A class is given its weights after its construction, so what was computed from others is old. A parameter's other
    name is no computation.
    """
    constructors = (
        method
        for one in module.body
        if isinstance(one, ast.ClassDef) and one.name == entry
        for method in one.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
    )
    method = next(constructors, None)
    if method is None:
        return None
    weights: set[str] = set()
    for statement in (node for node in ast.walk(method) if isinstance(node, ast.Assign | ast.Expr)):
        value = statement.value
        if isinstance(statement, ast.Assign):
            names = {one.attr if isinstance(one, ast.Attribute) else ast.unparse(one) for one in statement.targets}
            kept = any(isinstance(one, ast.Attribute) for one in statement.targets)
        else:
            names, kept = set(), called_name(value) == "register_buffer"
        if called_name(value) == "Parameter":
            weights |= names
        elif not isinstance(value, ast.Attribute | ast.Compare) and _reads_contents(value, frozenset(weights)):
            if kept:
                return statement.lineno
            weights |= names
    return None


def called_name(value: ast.expr) -> str | None:
    """Return the last name of the called function; None if nothing is called."""
    function = value.func if isinstance(value, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def _names(condition: ast.expr, attribute: str) -> bool:
    """Return whether a condition is about an attribute: `self.kept is None`, or `not hasattr(self, "kept")`."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == attribute)
        or (isinstance(node, ast.Constant) and node.value == attribute)
        for node in ast.walk(condition)
    )


def _reads_contents(value: ast.expr, arguments: frozenset[str]) -> bool:
    """Return whether a value depends on the contents of an argument or of a weight, beyond their form."""
    rest: list[ast.AST] = [value]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Attribute) and node.attr in ABOUT_FORM:
            continue
        if isinstance(node, ast.keyword) and node.arg == "bias":  # of a layer: whether it has one
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NEW_MEMORY:
            continue
        if isinstance(node, ast.Attribute) and (
            "weight" in node.attr or "bias" in node.attr or node.attr in arguments
        ):
            return True
        if isinstance(node, ast.Name) and node.id in arguments:
            return True
        rest.extend(ast.iter_child_nodes(node))
    return False
