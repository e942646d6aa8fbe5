"""Runs beside hostile code. Gives Triton's interpreter the functions of NVIDIA's device library, which it hasn't.

So a kernel that calls `libdevice.tanh` can be checked without its GPU. Each function is computed in fp64 and rounded
once. So the library's own error, some units in the last place, isn't simulated.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

_UNKNOWN = "{} can't be computed without a GPU"
Function = Callable[..., torch.Tensor]
PREFIX, FAST = "__nv_", "fast_"
"""Beginnings of the library's own names. Those of less precise variants have both."""
_NAMED = """
    acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor hypot lgamma log log10 log1p
    log2 pow rsqrt sin sinh sqrt tan tanh trunc atan2 copysign fmod signbit
"""
"""Functions that have one name in the library and in torch."""


class NeedsGpuError(Exception):
    """A kernel uses what only a GPU can compute."""


def _of_torch() -> dict[str, Function]:
    found: dict[str, Function] = {name: getattr(torch, name) for name in _NAMED.split()}
    found |= dict.fromkeys(("rint", "nearbyint", "llrint"), torch.round)
    found |= dict.fromkeys(("round", "llround"), lambda x: torch.copysign((x.abs() + 0.5).floor(), x))
    found |= dict.fromkeys(("abs", "fabs", "llabs"), torch.abs)
    found |= dict.fromkeys(("finite", "isfinite"), torch.isfinite)
    return found | {
        "isnan": torch.isnan,
        "isinf": torch.isinf,
        "exp10": lambda x: 10.0**x,
        "cbrt": lambda x: torch.copysign(x.abs() ** (1 / 3), x),
        "rcbrt": lambda x: torch.copysign(x.abs() ** (-1 / 3), x),
        "cospi": lambda x: torch.cos(torch.pi * x),
        "sinpi": lambda x: torch.sin(torch.pi * x),
        "normcdf": torch.special.ndtr,
        "normcdfinv": torch.special.ndtri,
        "cyl_bessel_i0": torch.special.i0,
        "cyl_bessel_i1": torch.special.i1,
        "saturate": lambda x: x.nan_to_num(nan=0.0).clamp(0.0, 1.0),
        "fdim": lambda x, y: (x - y).clamp(min=0.0),
        "fdivide": torch.div,
        "powi": torch.pow,
        "fma": lambda x, y, z: x * y + z,
    }


def _rounded_to_nearest() -> dict[str, Function]:
    """Return the functions that say how they round, of those that round to nearest."""
    found: dict[str, Function] = {}
    for kind in "fd":
        found |= {f"{kind}{name}_rn": getattr(torch, name) for name in ("add", "sub", "mul", "div", "sqrt", "rsqrt")}
        found[f"{kind}rcp_rn"] = torch.reciprocal
    for source in ("float", "double"):
        for whole in ("int", "uint", "ll", "ull"):
            found |= {
                f"{source}2{whole}_{how}": function
                for how, function in (
                    ("rn", torch.round),
                    ("rz", torch.trunc),
                    ("rd", torch.floor),
                    ("ru", torch.ceil),
                )
            }
    converted = ("double2float", "int2double", "uint2double", "int2float", "uint2float", "ll2double", "ll2float")
    return found | {f"{name}_rn": torch.clone for name in converted}


def know_device_functions() -> None:
    """Let the interpreter compute them, and let kernels call them by the names of every module that has them."""
    from triton.runtime import interpreter

    try:
        from triton.language.extra import libdevice as of_any_device
        from triton.language.extra.cuda import libdevice as of_cuda
    except ImportError:  # a build of Triton for other devices alone
        return
    functions = _of_torch() | _rounded_to_nearest()

    def compute(_builder, _library, _path, symbol, operands, kind, _is_pure):  # type: ignore[no-untyped-def]  # triton
        function = _find(functions, symbol)
        if function is None:
            raise NeedsGpuError(_UNKNOWN.format(symbol))
        given = [torch.from_numpy(one.data.astype("float64")) for one in operands]
        element = kind.scalar
        found = function(*given).numpy().astype(interpreter._get_np_dtype(element))
        return interpreter.TensorHandle(found, element)

    def assemble(*_: object) -> None:
        raise NeedsGpuError(_UNKNOWN.format("inline assembly"))

    interpreter.InterpreterBuilder.create_extern_elementwise = compute
    interpreter.InterpreterBuilder.create_inline_asm = assemble
    for name, member in list(vars(of_cuda).items()):
        if getattr(member, "__triton_builtin__", False):
            called = _with_semantic(member, interpreter)
            for module in (of_cuda, of_any_device):
                setattr(module, name, called)


def _find(functions: dict[str, Function], symbol: str) -> Function | None:
    """Return the function of a symbol such as `__nv_tanhf`, whose last letter may name the type."""
    name = symbol.removeprefix(PREFIX).removeprefix(FAST)
    return next((functions[one] for one in (name, name.rstrip("df"), name[:-1]) if one in functions), None)


def _with_semantic(member: Callable[..., object], interpreter: Any) -> Callable[..., object]:
    """Return the function for kernels that the interpreter runs; it gives only functions of `tl` what they need."""

    @functools.wraps(member)
    def call(*given: object, **named: object) -> object:
        return member(*given, **{**named, "_semantic": interpreter.interpreter_semantic})

    return call
