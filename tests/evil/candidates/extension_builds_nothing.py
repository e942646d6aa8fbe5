"""Names load_inline and never calls it: there is nothing to load.

Refused by: build COMPILE_ERROR
Catalogue: D3
Language: cpp
Build: extension
"""

from torch.utils.cpp_extension import load_inline


def fused_add_rmsnorm(x, residual, weight, eps):
    return load_inline(name="never", cpp_sources="")
