"""Reads what a cubin holds without loading it; the cubin was made beside hostile code.

Distrusts every byte: the builder or the guest chose offsets, lengths, counts and names. The result repeats what the
file's sections and symbols say. So the launcher still loads the code in a context of its own.

A cubin is an ELF64 file for machine 190. The layout of `e_flags` is LLVM's (llvm/BinaryFormat/ELF.h, EF_CUDA_*). The
rest was read off cubins that ptxas 12.9, 13.0 and 13.4 wrote for known sources.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from forge.sandbox.elf import File, Section, Symbol, read_file

LIMIT_BYTES = 64 * 2**20
"""Size of a cubin in bytes, at most. Chosen: half of what a whole build may have."""
MACHINE = 190
"""Machine number of NVIDIA's device code, EM_CUDA. The value is that of the ELF registry."""
_EXECUTABLE = 2
"""Type of an ELF file that can be executed (ET_EXEC of elf(5))."""
_ABIS = {(0x33, 7), (0x41, 8)}
"""Pairs of EI_OSABI and EI_ABIVERSION that a cubin may have: the first until about CUDA 12.8, then the second."""
_FUNCTION, _ENTRY = 2, 0x10
"""Symbol type STT_FUNC, and the bit of `st_other` that tells a kernel from a device function."""
_ISA_CLASS, _SPECIFIC, _SIZED = 0x09, 1, 4
"""Numbers in `.nv.compat`: the attribute, its value for code that runs on one architecture alone (sm_90a), and the
form of an entry with a payload."""
_NAME = re.compile(rb"[\x21-\x7e]+")
_SUPPLIED = re.compile(r"\.nv\.reservedSmem\.\w+|__U[FD]T(_OFFSET|_CANONICAL|_END)?")
"""Names of undefined symbols that the driver lays out; they can't be called."""


@dataclass(frozen=True, kw_only=True)
class Cubin:
    """The properties of a piece of device code, as its file states them."""

    arch: str
    """Architecture: `sm_90`, or `sm_90a` for code that runs on that architecture alone."""
    kernels: tuple[str, ...]
    """Names that can be launched, sorted, mangled as the compiler left them."""
    externals: tuple[str, ...]
    """Functions that the code calls and doesn't define, sorted: the driver's printf and malloc, device-side
    launches."""


def read_cubin(untrusted: bytes) -> Cubin:
    """Return the properties of a cubin; raise ValueError for a file that isn't a complete, loadable cubin."""
    if len(untrusted) > LIMIT_BYTES:
        raise ValueError(f"a cubin has {len(untrusted)} bytes, expected at most {LIMIT_BYTES}")
    file = read_file(untrusted)
    if file.machine != MACHINE:
        raise ValueError(f"a cubin is for machine {file.machine}, expected NVIDIA's, {MACHINE}")
    if file.type != _EXECUTABLE:
        raise ValueError(f"a cubin is of ELF type {file.type}, expected linked code ({_EXECUTABLE}), not an object")
    named = _sections(file)
    kernels = sorted(_text(symbol) for symbol in file.symbols if _is_kernel(symbol, file))
    if len(set(kernels)) != len(kernels):
        raise ValueError("a cubin has two kernels of one name")
    return Cubin(
        arch=_arch(file, named),
        kernels=tuple(kernels),
        externals=tuple(sorted(_externals(file))),
    )


def _sections(file: File) -> Mapping[bytes, Section]:
    named = {section.name: section for section in file.sections}
    if len(named) != len(file.sections):
        raise ValueError("a cubin has two sections of one name")
    return named


def _is_kernel(symbol: Symbol, file: File) -> bool:
    if symbol.type != _FUNCTION or not symbol.other & _ENTRY or symbol.section == 0:
        return False
    if symbol.section >= len(file.sections) or file.sections[symbol.section].name != b".text." + symbol.name:
        raise ValueError("a cubin has a kernel outside the section of its name")
    return True


def _externals(file: File) -> Iterator[str]:
    for symbol in file.symbols:
        if symbol.section == 0 and symbol.name and not _SUPPLIED.fullmatch(name := _text(symbol)):
            yield name


def _text(symbol: Symbol) -> str:
    if not _NAME.fullmatch(symbol.name):
        raise ValueError(f"a cubin's symbol is called {symbol.name[:40]!r}, expected printable ASCII")
    return symbol.name.decode("ascii")


def _arch(file: File, named: Mapping[bytes, Section]) -> str:
    if (file.os_abi, file.abi_version) not in _ABIS:
        raise ValueError(f"a cubin has ABI {file.os_abi:#x} version {file.abi_version}, expected one of {_ABIS}")
    if file.abi_version == 7:
        number, specific = file.flags & 0xFF, bool(file.flags & 0x800)
    else:
        number, specific = file.flags >> 8 & 0xFF, bool(file.flags & 0x8)
        compat = named.get(b".nv.compat")
        specific = specific or (compat is not None and _isa_class(file.content(compat)) == _SPECIFIC)
    return f"sm_{number}{'a' if specific else ''}"


def _isa_class(untrusted: bytes) -> int | None:
    """Return the attribute's value.

    Entries have a form, an attribute and a two-byte value, or a payload of that size.
    """
    at = 0
    while at + 4 <= len(untrusted):
        form, attribute = untrusted[at], untrusted[at + 1]
        value = int.from_bytes(untrusted[at + 2 : at + 4], "little")
        if attribute == _ISA_CLASS:
            return value
        at += 4 + (value if form == _SIZED else 0)
    return None
