"""Runs beside hostile code. Makes Triton's interpreter refuse conditions that Triton's compiler refuses."""

import dis
import functools
import os
import sys
import types


def refuse_truth_of_blocks() -> None:
    """Make the interpreter refuse a block of several numbers as a condition, as Triton's compiler does.

    By itself it takes every such block for true, so that a kernel that no GPU can run was accepted. It still does
    where the compiler takes a block: in `and`, `or`, `not`, chained comparisons and assertions. It also does so in
    Triton's own code, which asks in this way whether it was given a tensor.
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
