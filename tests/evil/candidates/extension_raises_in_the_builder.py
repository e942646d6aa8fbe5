"""Raises in the builder, where a harness that only catches compilers' errors might go on without an artifact.

Refused by: build COMPILE_ERROR
Catalogue: D3 B15
Language: cpp
Build: extension
"""

from torch.utils.cpp_extension import load_inline

raise KeyboardInterrupt


def fused_add_rmsnorm(x, residual, weight, eps):
    return load_inline(name="never", cpp_sources="")
