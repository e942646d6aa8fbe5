"""Runs beside hostile code. Makes Triton's interpreter treat the truth of blocks as Triton's compiler does."""

import ast
import dis
import functools
import os
import sys
import types
from collections.abc import Callable


def treat_blocks_as_the_compiler() -> None:
    """Refuse blocks as conditions, and combine blocks of truth values by element."""
    _refuse_truth_of_blocks()
    _combine_blocks_by_element()


def _refuse_truth_of_blocks() -> None:
    """Make the interpreter refuse a block of several numbers as a condition, as Triton's compiler does.

    By itself it takes every such block for true, so that a kernel that no GPU can run was accepted. It still does
    in assertions, and in Triton's own code, which asks in this way whether it was given a tensor.
    """
    import triton
    from triton.runtime import interpreter

    patch_tensor, own_code = interpreter._patch_lang_tensor, os.path.dirname(triton.__file__) + os.sep

    def patch(tensor, scope):  # type: ignore[no-untyped-def]  # triton has no types here
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__bool__", truth)

    def truth(block) -> bool:  # type: ignore[no-untyped-def]  # the same
        if block.handle.data.size == 1:
            return bool(block.handle.data)
        asking = sys._getframe(1)
        if not asking.f_code.co_filename.startswith(own_code) and _is_condition(asking.f_code, asking.f_lasti):
            raise ValueError(
                "the truth of a block of several numbers is ambiguous, and Triton's compiler refuses it: "
                "tl.where chooses by element"
            )
        return True

    interpreter._patch_lang_tensor = patch


@functools.cache
def _is_condition(code: types.CodeType, offset: int) -> bool:
    """Return whether the instruction there decides an `if`, a `while` or a choice, and isn't part of an expression.

    An expression's value is still needed after a jump, so it is copied before, or the jump itself keeps it.
    """
    passed_over = ("TO_BOOL", "NOT_TAKEN", "CACHE")
    asked = [one for one in dis.get_instructions(code) if one.offset == offset or one.opname not in passed_over]
    at = next((place for place, one in enumerate(asked) if one.offset == offset), 0)
    jump = at if asked[at].opname.startswith("POP_JUMP") else at + 1
    if at == 0 or jump + 1 >= len(asked) or not asked[jump].opname.startswith("POP_JUMP"):
        return False
    asserts = asked[jump + 1].opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
    return not asserts and asked[at].opname != "UNARY_NOT" and asked[at - 1].opname != "COPY"


def _combine_blocks_by_element() -> None:
    """Make the interpreter compute `and`, `or` and `not` of blocks element by element, as Triton's compiler does.

    The interpreter itself takes each block for true, so that `a and b` is `b`. A kernel whose mask is wrong on a GPU
    would be accepted, and one whose mask is right refused. Scalars are left to Python.
    """
    from triton.runtime import interpreter

    semantic = type(interpreter.interpreter_semantic)
    semantic.and_of_blocks = staticmethod(functools.partial(_combined, "logical_and", False))
    semantic.or_of_blocks = staticmethod(functools.partial(_combined, "logical_or", True))
    semantic.not_of_block = staticmethod(_inverted)
    rewriting = {"visit_BoolOp": _and_or_called, "visit_UnaryOp": _not_called, "visit_Assign": _assigned}
    interpreter.FunctionRewriter.ast_transformer = type("Rewriting", (interpreter.ASTTransformer,), rewriting)()


def _and_or_called(transformer: ast.NodeTransformer, node: ast.BoolOp) -> ast.expr:
    transformer.generic_visit(node)
    if any(isinstance(one, ast.NamedExpr) for one in ast.walk(node)):  # it would bind inside a lambda
        return node
    return _call("and_of_blocks" if isinstance(node.op, ast.And) else "or_of_blocks", node, node.values)


def _not_called(transformer: ast.NodeTransformer, node: ast.UnaryOp) -> ast.expr:
    transformer.generic_visit(node)
    return _call("not_of_block", node, [node.operand]) if isinstance(node.op, ast.Not) else node


def _assigned(transformer: ast.NodeTransformer, node: ast.Assign) -> ast.AST:
    """Rewrite what is assigned, which Triton up to 3.7 leaves as it is, and then wrap it as Triton does."""
    from triton.runtime import interpreter

    value, node.value = transformer.visit(node.value), ast.Constant(value=None)
    found: ast.Assign = interpreter.ASTTransformer.visit_Assign(transformer, node)
    assert isinstance(found.value, ast.Call), "Triton makes a tensor of each value"
    found.value.args[0] = value
    return found


def _call(name: str, node: ast.expr, operands: list[ast.expr]) -> ast.expr:
    """Return a call with each operand as a function without arguments, which is called only if it is needed."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.Attribute(value=ast.Name(id="interpreter_semantic", ctx=ast.Load()), attr=name, ctx=ast.Load())
    thunks: list[ast.expr] = [ast.Lambda(args=nothing, body=one) for one in operands]
    return ast.copy_location(ast.Call(func=function, args=thunks, keywords=[]), node)


def _combined(method: str, decides: bool, *operands: Callable[[], object]) -> object:
    """Return the operands' conjunction or disjunction; a scalar whose truth is `decides` ends it, as in Python."""
    blocks, value = None, None
    for operand in operands:
        value = operand()
        if _is_block(value):
            _require_truth_values(value)
            blocks = value if blocks is None else getattr(blocks, method)(value)
        elif bool(value) is decides:
            return value if blocks is None else getattr(blocks, method)(decides)
    return value if blocks is None else blocks


def _inverted(operand: Callable[[], object]) -> object:
    value = operand()
    if not _is_block(value):
        return not value
    _require_truth_values(value)
    return ~value  # type: ignore[operator]  # a block of truth values


def _is_block(value: object) -> bool:
    import triton.language as tl

    return isinstance(value, tl.tensor) and value.type.is_block()


def _require_truth_values(block) -> None:  # type: ignore[no-untyped-def]  # triton has no types here
    if not block.dtype.is_int1():
        raise ValueError(
            f"and, or and not take blocks of truth values, this one is of {block.dtype}: Triton's compiler refuses "
            "it; compare it with a number"
        )
