"""A cubin is read for what it is, and any other bytes are a ValueError."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.sandbox.cubin import Cubin, read_cubin
from forge.sandbox.elf import read_file
from tests.sandbox.cubins import (
    CONSTANT,
    COUNTER,
    COUNTS,
    LOOKS_UP,
    PRINTS,
    READS_CONSTANT,
    TABLE,
    VPRINTF,
    assemble,
    kernel,
)

SECTION_TABLE, MACHINE, ABI_VERSION, COUNT = 0x28, 0x12, 8, 0x3C
FUNCTION = 2


def patched(content: bytes, offset: int, value: bytes) -> bytes:
    return content[:offset] + value + content[offset + len(value) :]


def everything() -> bytes:
    return assemble(
        COUNTER, TABLE, CONSTANT, VPRINTF, kernel("one", COUNTS + LOOKS_UP), kernel("two", READS_CONSTANT + PRINTS)
    )


def test_a_plain_kernel_has_a_name_and_an_architecture_and_nothing_else() -> None:
    assert read_cubin(assemble(kernel("add"))) == Cubin(arch="sm_90a", kernels=("add",), externals=())


def test_every_kernel_and_foreign_function_is_told() -> None:
    assert read_cubin(everything()) == Cubin(
        arch="sm_90a",
        kernels=("one", "two"),
        externals=("vprintf",),
    )


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a"])
@pytest.mark.parametrize("assembler", ["ptxas", "ptxas-blackwell"])
def test_the_architecture_is_read_from_both_layouts(arch: str, assembler: str) -> None:
    content = assemble(kernel("add"), arch=arch, assembler=assembler)
    assert read_cubin(content).arch == arch


def test_both_layouts_are_among_those_that_are_tried() -> None:
    made = {assemble(kernel("add"), arch=arch)[ABI_VERSION] for arch in ("sm_90a", "sm_100a")}
    assert made == {7, 8}


def test_a_device_function_is_no_kernel() -> None:
    function = """
    .func (.param .b32 r) count (.param .b32 a) {
      .reg .b32 %r<4>; .reg .pred %p; ld.param.b32 %r1, [a]; setp.eq.u32 %p, %r1, 0; @%p bra END; sub.u32 %r1, %r1, 1;
      { .param .b32 b; st.param.b32 [b], %r1; .param .b32 q; call.uni (q), count, (b); ld.param.b32 %r2, [q]; }
      add.u32 %r1, %r2, 3; END: st.param.b32 [r], %r1; ret;
    }"""
    calls = (
        "{ .param .b32 a; st.param.b32 [a], %r1; .param .b32 q; call.uni (q), count, (a); ld.param.b32 %r1, [q]; }"
    )
    content = assemble(function, kernel("add", calls))
    assert any(b"count" in symbol.name and symbol.type == FUNCTION for symbol in read_file(content).symbols)
    assert read_cubin(content).kernels == ("add",)
    assert read_cubin(content).externals == ()


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"\x7fELG", "not an ELF file"),
        (4, b"\x01", "not an ELF file"),
        (MACHINE, b"\x3e\x00", "machine 62"),
        (0x10, b"\x01\x00", "an object"),
        (ABI_VERSION, b"\x09", "ABI"),
        (COUNT, b"\x00\x00", "table of sections"),
        (COUNT, b"\xff\xfe", "refers to"),
        (SECTION_TABLE, b"\xff" * 8, "refers to"),
    ],
)
def test_what_is_no_cubin_says_why(offset: int, value: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_cubin(patched(everything(), offset, value))


def test_two_kernels_of_one_name_are_refused() -> None:
    content = everything()
    with pytest.raises(ValueError, match="of one name"):
        read_cubin(content.replace(b"two\0", b"one\0"))


@given(st.binary(max_size=400))
def test_any_bytes_are_a_cubin_or_a_value_error(untrusted: bytes) -> None:
    with pytest.raises(ValueError, match=r"ELF"):
        read_cubin(untrusted)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.data())
def test_a_damaged_cubin_is_a_cubin_or_a_value_error(data: st.DataObject) -> None:
    content = bytearray(everything())
    (table,) = struct.unpack_from("<Q", content, SECTION_TABLE)
    (count,) = struct.unpack_from("<H", content, COUNT)
    tables = [
        (0, 64),
        (table, table + 64 * count),
        *((one.offset, one.offset + one.size) for one in read_file(bytes(content)).sections if one.type in (2, 3)),
        (0, len(content)),
    ]
    for first, last in data.draw(st.lists(st.sampled_from(tables), min_size=1, max_size=6)):
        at = data.draw(st.integers(first, max(first, last - 1)))
        width = data.draw(st.sampled_from([1, 2, 4, 8]))
        value = data.draw(st.integers(0, 2 ** (8 * width) - 1) | st.sampled_from([0, 2 ** (8 * width) - 1]))
        content[at : at + width] = value.to_bytes(width, "little")
    cut = data.draw(st.integers(0, len(content)) | st.just(len(content)))
    try:
        found = read_cubin(bytes(content[:cut]))
    except ValueError:
        return
    assert found.arch.startswith("sm_")
    assert list(found.kernels) == sorted(set(found.kernels))


def test_a_file_of_many_long_names_is_read_in_bounded_memory() -> None:
    content = everything()
    file = read_file(content)
    symbols = next(one for one in file.sections if one.type == 2)
    (table,) = struct.unpack_from("<Q", content, SECTION_TABLE)
    long = b"a" * (2**20) + b"\0"
    grown = patched(content + long, table + 64 * symbols.link + 0x18, struct.pack("<QQ", len(content), len(long)))
    with pytest.raises(ValueError, match="doesn't end"):
        read_cubin(grown)
