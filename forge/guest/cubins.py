"""Runs beside hostile code. Finds the device code behind a function handle of a captured graph."""

import gc
import sys
from pathlib import Path
from typing import Any

from cuda.bindings import driver  # type: ignore[import-not-found]  # there only where a GPU is


class Found:
    """Device code by function: what Triton compiled in this process, and the builder's files beside kernel.py."""

    def __init__(self, directory: Path) -> None:
        self._built = [path.read_bytes() for path in sorted(directory.glob("*.cubin"))]

    def of(self, handle: int, name: str) -> bytes | None:
        """Return the cubin that holds the function; None if the candidate didn't make it, such as the framework's."""
        for kernel in _triton_kernels():
            if kernel.function == handle:
                content: bytes = kernel.asm["cubin"]
                return content
        return next((content for content in self._built if _holds(content, name)), None)


# Any: Triton has no types
def _triton_kernels() -> list[Any]:
    compiler = sys.modules.get("triton.compiler")
    if compiler is None:
        return []
    kind = compiler.CompiledKernel
    return [one for one in gc.get_objects() if type(one) is kind and getattr(one, "function", None) is not None]


def _holds(content: bytes, name: str) -> bool:
    failed, module = driver.cuModuleLoadData(content)
    if failed:
        return False
    failed, _ = driver.cuModuleGetFunction(module, name.encode())
    driver.cuModuleUnload(module)
    return not failed
