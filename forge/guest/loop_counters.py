"""Runs beside hostile code. Makes Triton's interpreter count loops in Triton's own numbers, as its compiler does.

By itself it counts in Python's numbers, which have no `.to`. So a kernel that widens its row in the usual way,
`row.to(tl.int64)`, failed in the interpreter and ran on a GPU.
"""

import ast

_RANGE = "range"
"""Last part of the names of loops that the compiler keeps. Those of `static_range` are counted while it compiles."""


def count_as_the_compiler() -> None:
    """Make a loop's counter a tensor where its body asks it for an attribute, or hands it to another function.

    Elsewhere both kinds of numbers do the same, and Python's take less time.
    """
    from triton.runtime import interpreter

    rewriter = interpreter.FunctionRewriter
    base = type(rewriter.ast_transformer)
    rewriter.ast_transformer = type("Counting", (base,), {"visit_For": _counted})()


def _counted(transformer: ast.NodeTransformer, node: ast.For) -> ast.For:
    counter = node.target.id if isinstance(node.target, ast.Name) and _is_counted(node.iter) else ""
    asked = bool(counter) and _asks(node, counter)
    transformer.generic_visit(node)
    if asked:
        node.body.insert(0, ast.copy_location(_made_a_tensor(counter), node))
    return node


def _is_counted(loop: ast.expr) -> bool:
    if not isinstance(loop, ast.Call):
        return False
    named = loop.func
    return (named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")) == _RANGE


def _asks(node: ast.For, counter: str) -> bool:
    for one in (below for statement in node.body for below in ast.walk(statement)):
        if isinstance(one, ast.Attribute) and _is_made_of(one.value, counter):
            return True
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            given = (*one.args, *(named.value for named in one.keywords))
            if any(_is_made_of(argument, counter) for argument in given):
                return True
    return False


def _is_made_of(value: ast.expr, counter: str) -> bool:
    """Return whether an expression computes with the counter, outside of any call in it."""
    match value:
        case ast.Name(id=name):
            return name == counter
        case ast.BinOp(left=left, right=right):
            return _is_made_of(left, counter) or _is_made_of(right, counter)
        case ast.UnaryOp(operand=operand):
            return _is_made_of(operand, counter)
        case _:
            return False


def _made_a_tensor(counter: str) -> ast.Assign:
    """Return `counter = interpreter_semantic.to_tensor(counter, False)`, as the interpreter writes assignments."""
    semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
    made = ast.Call(
        func=ast.Attribute(value=semantic, attr="to_tensor", ctx=ast.Load()),
        args=[ast.Name(id=counter, ctx=ast.Load()), ast.Constant(value=False)],
        keywords=[],
    )
    return ast.Assign(targets=[ast.Name(id=counter, ctx=ast.Store())], value=made)
