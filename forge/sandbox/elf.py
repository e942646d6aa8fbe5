"""Parses an ELF64 file: sections and symbols, with every offset checked before it is used.

Distrusts every byte. Raises nothing but ValueError. Layout: System V ABI, chapter 4 (refspecs.linuxbase.org/elf).
"""

import struct
from dataclasses import dataclass

NO_BITS = 8
"""Section type SHT_NOBITS: memory without content in the file."""
_SYMBOLS = 2
"""Type of the section that holds the symbol table (SHT_SYMTAB of elf(5))."""
_ELF64_LITTLE = b"\x7fELF\x02\x01\x01"
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ADDRESS_SPACE = 2**40
"""Size of a section in memory in bytes, at most. It is 1 TiB, more memory than a GPU has. A section of zeros takes no
room in the file, so the file's size doesn't limit it."""
_MOST_SYMBOLS = 2**16
"""Number of symbols in a file, at most. The table then has 1.5 MiB, at 24 bytes each."""
_LONGEST_NAME = 4096
"""Number of bytes in a name, at most. Mangled names of templates have up to some thousand characters."""
_RESERVED = 0xFF00
"""First of the reserved section numbers (SHN_LORESERVE of elf(5)). No file has as many sections."""
_ABSOLUTE = 0xFFF1
"""Section number of a symbol with an absolute value (SHN_ABS of elf(5))."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One entry of the section table."""

    name: bytes
    type: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True, kw_only=True)
class Symbol:
    """One entry of the symbol table."""

    name: bytes
    type: int
    other: int
    section: int
    """Index of the symbol's section; 0 if the symbol is undefined."""


@dataclass(frozen=True, kw_only=True)
class File:
    """The content of an ELF file, as the file states it."""

    untrusted: bytes
    os_abi: int
    abi_version: int
    type: int
    machine: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def content(self, section: Section) -> bytes:
        """Return a section's bytes."""
        return _slice(self.untrusted, section.offset, section.size)


def read_file(untrusted: bytes) -> File:
    """Read header, sections and symbols; raise ValueError for anything that lies outside the file."""
    if len(untrusted) < _HEADER.size or not untrusted.startswith(_ELF64_LITTLE):
        raise ValueError("not an ELF file of 64 bits, little-endian")
    ident, kind, machine, _, _, _, at, flags, _, _, _, entry, count, names = _HEADER.unpack_from(untrusted)
    if entry != _SECTION.size or not 0 < names < count < _RESERVED:
        raise ValueError("an ELF file without a table of sections")
    sections = _sections(untrusted, at=at, count=count, names=names)
    return File(
        untrusted=untrusted,
        os_abi=ident[7],
        abi_version=ident[8],
        type=kind,
        machine=machine,
        flags=flags,
        sections=sections,
        symbols=_symbols(untrusted, sections),
    )


def _sections(untrusted: bytes, *, at: int, count: int, names: int) -> tuple[Section, ...]:
    table = list(_SECTION.iter_unpack(_slice(untrusted, at, count * _SECTION.size)))
    strings = _slice(untrusted, table[names][4], table[names][5])
    found = []
    for name, kind, _, _, offset, size, link, _, _, _ in table:
        if kind not in (0, NO_BITS):
            _require_within(untrusted, offset, size)
        if size > _ADDRESS_SPACE:
            raise ValueError(f"an ELF section has {size} bytes, expected at most {_ADDRESS_SPACE}")
        found.append(Section(name=_string(strings, name), type=kind, offset=offset, size=size, link=link))
    return tuple(found)


def _symbols(untrusted: bytes, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    tables = [section for section in sections if section.type == _SYMBOLS]
    if len(tables) != 1:
        raise ValueError(f"an ELF file has {len(tables)} tables of symbols, expected one")
    table = tables[0]
    if table.size % _SYMBOL.size or table.size // _SYMBOL.size > _MOST_SYMBOLS or table.link >= len(sections):
        raise ValueError("an ELF file's table of symbols is malformed")
    strings = _slice(untrusted, sections[table.link].offset, sections[table.link].size)
    found = []
    for name, info, other, section, _, _ in _SYMBOL.iter_unpack(_slice(untrusted, table.offset, table.size)):
        if section >= len(sections) and section != _ABSOLUTE:
            raise ValueError(f"an ELF symbol is in section {section}, expected one of {len(sections)}")
        found.append(Symbol(name=_string(strings, name), type=info & 0xF, other=other, section=section))
    return tuple(found)


def _slice(untrusted: bytes, offset: int, size: int) -> bytes:
    _require_within(untrusted, offset, size)
    return untrusted[offset : offset + size]


def _require_within(untrusted: bytes, offset: int, size: int) -> None:
    if offset > len(untrusted) or size > len(untrusted) - offset:
        raise ValueError(
            f"an ELF file of {len(untrusted)} bytes refers to {size} bytes at {offset}: expected them inside it"
        )


def _string(strings: bytes, at: int) -> bytes:
    end = strings.find(b"\0", at, at + _LONGEST_NAME + 1)
    if at >= len(strings) or end < 0:
        raise ValueError(f"an ELF name at {at} doesn't end within {_LONGEST_NAME} bytes")
    return strings[at:end]
