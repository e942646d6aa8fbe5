"""Runs beside hostile code. Spares Triton's interpreter work that it would do again at each operation, or in vain.

Results stay the same, to the last bit and the last exception. A verification of a Triton kernel without its GPU
spends most of its time in the interpreter.
"""

import functools
from typing import Any


def spare_the_interpreter() -> None:
    """Make the interpreter remember what it looks up and makes, and leave out what changes nothing."""
    _remember_lookups()
    _remember_types()
    _leave_out_what_changes_nothing()


def _remember_lookups() -> None:
    """Make the interpreter look for a module's builtins and for numpy's type of an element once.

    By itself it replaces the builtins at each launch, and again at each call of a device function such as `tl.sum`.
    It makes a table of all types at each operation.
    """
    import inspect

    import triton.language as tl
    from triton.runtime import interpreter

    names: dict[object, tuple[str, ...]] = {}

    def patch(package, *others):  # type: ignore[no-untyped-def]  # triton has no types here
        if package not in names:
            names[package] = tuple(name for name, one in inspect.getmembers(package) if tl.core.is_builtin(one))
        if names[package] and not tl.core.is_builtin(getattr(package, names[package][0])):
            return  # a launch that isn't over has replaced them all
        for name in names[package]:
            member = getattr(package, name)
            if tl.core.is_builtin(member):  # otherwise it is replaced already
                interpreter._patch_attr(package, name, member, *others)

    make_table = interpreter._get_np_dtype
    of_element = functools.cache(make_table)

    def numpy_type(element):  # type: ignore[no-untyped-def]  # triton has no types here
        scalar = element.element_ty if isinstance(element, tl.block_type) else element
        return make_table(scalar) if isinstance(scalar, tl.pointer_type) else of_element(scalar)

    interpreter._patch_builtin = patch
    interpreter._get_np_dtype = numpy_type


def _remember_types() -> None:
    """Make the interpreter make the type of a block, and the shape of its tensors, once for each size.

    By itself it makes them, and their names, anew at each operation.
    """
    import triton.language as tl

    plain, anew = tl.block_type.with_element_ty, tl.tensor.__init__
    types: dict[tuple[object, ...], tl.block_type] = {}
    shapes: dict[tuple[int, ...], dict[str, object]] = {}

    def with_element(block: tl.block_type, scalar: tl.dtype) -> tl.block_type:
        if isinstance(scalar, tl.pointer_type):
            return plain(block, scalar)
        key = (scalar.name, *block.shape)
        if key not in types:
            types[key] = plain(block, scalar)
        return types[key]

    def start(tensor: tl.tensor, handle: object, type: tl.dtype) -> None:  # noqa: A002 (the interpreter's own name)
        sizes = (*type.shape,) if type.is_block() else ()
        if sizes in shapes:
            vars(tensor).update(shapes[sizes], handle=handle, type=type, dtype=type.scalar)
            return
        anew(tensor, handle, type)
        own = ("handle", "type", "dtype")
        shapes[sizes] = {name: value for name, value in vars(tensor).items() if name not in own}

    tl.block_type.with_element_ty = with_element
    tl.block_type.to_ir = lambda block, _: block  # the interpreter's own type of a block is this one
    tl.tensor.__init__ = start


def _leave_out_what_changes_nothing() -> None:
    """Leave out three kinds of the interpreter's work that change no result.

    It computes each sum of integers once more in 64 bits, for an assertion that is only made while a kernel is
    debugged. It compares the sizes of two equal blocks as if one had to be made larger. If an argument is no list, it
    asks four times what it is.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    semantic = type(interpreter.interpreter_semantic)
    assert_in_range, broadcast = semantic.binary_op_sanitize_overflow_impl, semantic.broadcast_impl_value
    unwrap = tl.core._unwrap_if_constexpr
    plain = (tl.dtype, tl.block_type, tl.pointer_type, tl.tensor, int, float, bool, type(None))

    def in_range(self, left, right, operation):  # type: ignore[no-untyped-def]  # triton has no types here
        if self.builder.options.debug:
            assert_in_range(self, left, right, operation)

    def as_large(self, left, right):  # type: ignore[no-untyped-def]  # the same
        one, other = left.type, right.type
        if one.is_block() and other.is_block() and (*one.shape,) == (*other.shape,):
            return left, right
        return broadcast(self, left, right)

    def unwrapped(value: Any) -> object:  # Any: what a candidate gives
        kind = type(value)
        if kind is tl.constexpr:
            return value.value
        return value if kind in plain else unwrap(value)

    semantic.binary_op_sanitize_overflow_impl = in_range
    semantic.broadcast_impl_value = as_large
    tl.core._unwrap_if_constexpr = unwrapped
