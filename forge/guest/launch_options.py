"""Runs beside hostile code. Makes Triton's interpreter refuse the launch options that its compiler refuses.

By itself it drops every option, so a kernel with three warps, or with a misspelt option, ran there alone.
"""

import functools
from collections.abc import Mapping
from typing import Any

_MOST_WARPS = 32
"""Number of warps of a program, at most: 1,024 threads, which is CUDA's limit for a block."""
_KEPT = frozenset({"grid", "warmup", "debug"})
"""Names that a launch takes for itself."""


def refuse_as_the_compiler() -> None:
    """Ask Triton's own backend for every new set of options, before the interpreter drops them."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime.interpreter import GridExecutor

    backend, launch = CUDABackend(GPUTarget("cuda", 90, 32)), GridExecutor.__call__
    known: set[str] = set()

    @functools.wraps(launch)
    def call(executor: Any, *arguments: object, **named: object) -> object:  # Any: Triton has no types
        options = {name: value for name, value in named.items() if name not in executor.arg_names}
        said = repr(sorted(options.items()))
        if said not in known:
            _require_known(backend, options)
            known.add(said)
        return launch(executor, *arguments, **named)

    GridExecutor.__call__ = call


def _require_known(backend: Any, options: Mapping[str, object]) -> None:  # Any: Triton has no types
    """Raise what the compiler raises for options that it doesn't know, or whose values no GPU takes."""
    parsed = backend.parse_options(dict(options))
    for name in options:
        if name not in parsed.__dict__ and name not in _KEPT:
            raise KeyError(f"Keyword argument {name} was specified but unrecognised")
    if parsed.num_warps > _MOST_WARPS:
        raise ValueError(f"num_warps is {parsed.num_warps}: expected at most {_MOST_WARPS}, as a GPU takes")
