"""Numbers in place of a reference file's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import UnknownName, UsageError
from forge.pipeline.constants import with_constants

FILE = b"""
import torch
# gr\xc3\xb6\xc3\x9fe
batch_size = 2048 * 2; dim = 16384  # columns
scale = -0.5
name = "a"
rows = dim // 2
twice = 1
twice = 2
counted = 3


class Model(torch.nn.Module):
    def forward(self, x):
        batch_size, dim = x.shape
        return x


def count():
    global counted
    counted = 4
"""


def test_only_the_numbers_change() -> None:
    changed = with_constants(FILE, ["batch_size=16", "scale=0.25", "dim=8"])
    wanted = FILE.replace(b"2048 * 2", b"16").replace(b"dim = 16384", b"dim = 8").replace(b"-0.5", b"0.25")
    assert changed == wanted


def test_sizes_that_are_assigned_together_can_be_changed_one_by_one() -> None:
    source = b"depth, height, width = 16, 32, 32\nlow, high = span\n"
    assert with_constants(source, ["height=4"]) == b"depth, height, width = 16, 4, 32\nlow, high = span\n"
    with pytest.raises(UnknownName):
        with_constants(source, ["low=4"])


def test_without_constants_the_file_stays() -> None:
    assert with_constants(b"not python(", []) == b"not python("


@pytest.mark.parametrize("name", ["name", "rows", "twice", "counted", "torch", "batch"])
def test_a_name_that_is_no_constant_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UnknownName, match="expected one of batch_size, dim, scale"):
        with_constants(FILE, [f"{name}=1"])


@pytest.mark.parametrize("text", ["", "dim", "dim=", "dim=x", "dim=1e3", "dim=__import__('os')", "=1", "dim=1\n"])
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected NAME=NUMBER"):
        with_constants(FILE, [text])


def test_a_constant_is_given_once() -> None:
    with pytest.raises(UsageError, match="given twice"):
        with_constants(FILE, ["dim=1", "dim=2"])


def test_a_file_that_does_not_parse_is_refused() -> None:
    with pytest.raises(UsageError, match=r"doesn't parse: .*\(reference\.py, line 1\)"):
        with_constants(b"def f(:", ["dim=1"])


@given(st.integers(-(10**17), 10**17))
def test_the_changed_file_assigns_the_number(number: int) -> None:
    names: dict[str, object] = {}
    exec(with_constants(b"size = 3 * (4 + 1)\nother = size + 1\n", [f"size={number}"]), names)
    assert (names["size"], names["other"]) == (number, number + 1)
