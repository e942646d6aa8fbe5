"""Real device code without a GPU: what ptxas makes of a few lines of PTX."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

COUNTER = ".global .align 4 .u32 counter;"
TABLE = ".global .align 4 .b32 table[4] = {1, 2, 3, 4};"
CONSTANT = ".const .align 4 .b8 weights[32];"
ADD = """
.visible .entry {name}(.param .u64 p) {{
  .reg .b64 %d<3>; .reg .b32 %r<3>;
  ld.param.u64 %d1, [p]; cvta.to.global.u64 %d2, %d1;
  ld.global.u32 %r1, [%d2]; {body} st.global.u32 [%d2], %r1; ret;
}}
"""
COUNTS = "atom.global.add.u32 %r1, [counter], 1;"
LOOKS_UP = "ld.global.u32 %r1, [table];"
READS_CONSTANT = "ld.const.u32 %r1, [weights];"
VPRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);"
PRINTS = """
{ .param .b64 a; st.param.b64 [a], %d1; .param .b64 b; st.param.b64 [b], %d1; .param .b32 q;
  call.uni (q), vprintf, (a, b); ld.param.b32 %r1, [q]; }
"""


def kernel(name: str, body: str = "") -> str:
    """PTX of a kernel that reads and writes one word."""
    return ADD.format(name=name, body=body)


@cache
def assemble(*parts: str, arch: str = "sm_90a", assembler: str = "ptxas") -> bytes:
    """The cubin that ptxas makes of some PTX; skip where triton, which ships one, isn't installed."""
    triton = pytest.importorskip("triton")
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / assembler
    if not tool.exists():
        pytest.skip(f"this triton has no {assembler}")
    version = "8.7" if arch > "sm_1" and len(arch.strip("sm_a")) > 2 else "8.0"
    with tempfile.TemporaryDirectory() as folder:
        text, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        text.write_text("\n".join([f".version {version}", f".target {arch}", ".address_size 64", *parts]))
        subprocess.run([str(tool), f"-arch={arch}", str(text), "-o", str(made)], check=True)
        return made.read_bytes()
