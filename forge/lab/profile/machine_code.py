"""Reads what `cuobjdump` shows of a cubin: registers, memory, and which instructions the compiler chose.

Mnemonics: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference" of Turing to Blackwell.
"""

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from forge.domain.profile import CodeFacts
from forge.errors import EnvironmentUnfit
from forge.lab.device.toolkit import PROGRAMS

_RESOURCES = re.compile(r"^ Function (\S+):\n\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)", re.MULTILINE)
"""Pattern of cuobjdump's line on a function's registers and memory."""
_FUNCTION = re.compile(r"^[ \t]++Function : (\S+)$", re.MULTILINE)
"""Pattern of the line that begins a function's instructions."""
_INSTRUCTION = re.compile(r"^[ \t]++/\*[0-9a-f]{4,}\*/[ \t]+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", re.MULTILINE)
"""Pattern of an instruction's line, with its name as the group."""
_MATRIX = frozenset({"HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA"})
"""Names of instructions for tensor cores, of one warp."""
_WARPGROUP = frozenset({"HGMMA", "IGMMA", "QGMMA", "BGMMA"})
"""Names of instructions for tensor cores, of four warps."""
_BULK_LOADS = frozenset({"UBLKCP", "UTMALDG"})
"""Names of instructions that copy whole tiles asynchronously."""
_DEFAULT_BITS = 32
"""Number of bits of an operand whose instruction names no width."""
_LIMIT_S = 60.0
"""Time limit of cuobjdump in seconds. Chosen; a longer limit delays the answer of a hung tool."""


@cache
def program() -> str:
    """Return the path of cuobjdump: on the search path, in the toolkit, or with Triton; raise EnvironmentUnfit."""
    found = shutil.which("cuobjdump") or shutil.which("cuobjdump", path=PROGRAMS) or _with_triton()
    if found is None:
        raise EnvironmentUnfit(
            "cuobjdump isn't on the path: expected it to read machine code",
            hint="install the CUDA toolkit, or triton",
        )
    return found


def _with_triton() -> str | None:
    import importlib.util

    triton = importlib.util.find_spec("triton")
    places = triton.submodule_search_locations if triton else None
    return shutil.which("cuobjdump", path=f"{places[0]}/backends/nvidia/bin") if places else None


def read_code(cubin: bytes) -> tuple[CodeFacts, ...]:
    """Return the facts about each kernel in a cubin; raise EnvironmentUnfit if the tool is missing or fails."""
    with tempfile.TemporaryDirectory(prefix="forge-cubin-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        return parse(_dump("--dump-resource-usage", path), _dump("--dump-sass", path))


def _dump(option: str, path: Path) -> str:
    try:
        ended = subprocess.run(
            [program(), option, str(path)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EnvironmentUnfit(f"cuobjdump {option} failed ({error}): expected it to read a cubin") from error
    return ended.stdout


def parse(resources: str, sass: str) -> tuple[CodeFacts, ...]:
    """Read both listings; kernels that are missing in one of them are left out."""
    pieces = _FUNCTION.split(sass)
    code = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return tuple(
        _facts(name, [int(number) for number in numbers], _INSTRUCTION.findall(code[name]))
        for name, *numbers in _RESOURCES.findall(resources)
        if name in code
    )


def _facts(name: str, resources: list[int], instructions: list[str]) -> CodeFacts:
    registers, stack, shared, local = resources
    opcodes = Counter(instruction.split(".")[0] for instruction in instructions)
    widths = [_bits(one) for one in instructions if one.split(".")[0] in {"LDG", "LDGSTS"}]
    warpgroup = sum(opcodes[name] for name in _WARPGROUP)
    return CodeFacts(
        name=name,
        registers=registers,
        stack_bytes=stack,
        shared_bytes=shared,
        local_bytes=local,
        widest_load_bits=max(widths, default=0),
        matrix_instructions=warpgroup + sum(opcodes[name] for name in _MATRIX),
        warpgroup_instructions=warpgroup,
        bulk_loads=sum(opcodes[name] for name in _BULK_LOADS),
        local_loads=opcodes["LDL"],
        local_stores=opcodes["STL"],
        barriers=opcodes["BAR"],
    )


def _bits(instruction: str) -> int:
    """Return the width in an opcode's suffixes: LDG.E.128, LDG.E.U16; 32 if it has none."""
    named = re.findall(r"\.(?:[US])?(8|16|64|128|256)(?=\.|$)", instruction)
    return int(named[-1]) if named else _DEFAULT_BITS
