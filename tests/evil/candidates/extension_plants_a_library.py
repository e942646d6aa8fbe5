"""Writes a file of its own making where the builder looks for what was compiled.

Refused by: load RUNTIME_ERROR or BAD_SUBMISSION
Catalogue: G17 G8
Language: cpp
Build: extension
"""

import pathlib

from torch.utils.cpp_extension import load_inline

try:
    planted = pathlib.Path("/scratch/torch_extensions/planted/planted.so")
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"\x7fELF is all that is right about this file")
except FileExistsError:
    pass
extension = None
if not pathlib.Path(__file__).with_name("planted.so").exists():
    extension = "still in the builder"
else:
    extension = load_inline(name="planted", cpp_sources="")


def fused_add_rmsnorm(x, residual, weight, eps):
    return load_inline(name="never", cpp_sources="")
