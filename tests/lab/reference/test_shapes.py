"""The user says which sizes vary, and one operand's range; the rest is inferred."""

from pathlib import Path

import pytest

from forge.domain.own_operation import Integers, Normal
from forge.domain.verdict import Accepted, Rejected
from forge.errors import ReferenceRefused
from forge.lab.reference.describe import Declared
from forge.sandbox.isolation import Walls
from tests.lab.reference.ends import EXAMPLES, POOL_RIGHT, TORCH
from tests.lab.reference.references import ask
from tests.lab.reference.test_ends import verdict_on

pytestmark = pytest.mark.usefixtures("short_series")

POOL = EXAMPLES["lengths of rows"].source
GATHER = EXAMPLES["an index into a large table"]
SCALE = (
    "import torch\ndef scaled(x, weight):\n    return x * weight / x.shape[1]\n"
    "def get_inputs():\n    return [torch.randn(16, 96), torch.rand(96)]\n"
)


def test_one_operand_is_declared_and_the_others_are_inferred(walls: Walls) -> None:
    lengths = Declared(name="lengths", dtype="int64", sizes=(16,), low=1, high=100)
    hidden, found = ask(POOL, operands=(lengths,)).contract.tensors
    assert (found.drawn, found.source) == (Integers(low=1, high=100), "family")
    assert (hidden.drawn, hidden.source) == (Normal(mean=0.0, deviation=1.0), "file")


@pytest.mark.parametrize(
    ("name", "dtype", "sizes", "why"),
    [
        ("lengths", "int64", (8,), r"get_inputs\(\) gives int64\[16\], and int64\[8\] is declared"),
        ("lengths", "int32", (16,), r"get_inputs\(\) gives int64\[16\], and int32\[16\] is declared"),
        ("other", "int64", (16,), "gives no tensor 'other'"),
    ],
)
def test_a_declaration_that_get_inputs_contradicts_is_refused(
    name: str, dtype: str, sizes: tuple[int, ...], why: str, walls: Walls
) -> None:
    declared = Declared(name=name, dtype=dtype, sizes=sizes, low=1, high=8)
    with pytest.raises(ReferenceRefused, match=why):
        ask(POOL, operands=(declared,))


def test_the_batch_is_the_axis_that_is_named(tmp_path: Path, walls: Walls) -> None:
    found = ask(GATHER.source, axes=["batch=index.0"])
    assert [one.batched for one in found.contract.tensors] == [False, True]
    assert (found.contract.batch, found.contract.results[0].batched) == (16, True)
    assert {"batch": 1} in found.held_out
    only_sixteen = TORCH + "def gather(table, index):\n    return 2 * table[index.expand(16)]\n"
    assert isinstance(verdict_on(found, only_sixteen, tmp_path), Rejected)
    assert verdict_on(found, GATHER.right_kernel, tmp_path) == Accepted()


def test_a_width_that_is_hard_coded_is_refused_where_the_width_varies(tmp_path: Path, walls: Walls) -> None:
    found = ask(SCALE, ranges=["x.1=1..512"])
    assert found.contract.shape == {"batch": 16, "x_1": 96}
    assert [one.axes for one in found.contract.tensors] == [("batch", "x_1"), ("x_1",)]
    assert found.contract.results[0].axes == ("batch", "x_1")
    assert {1, 512} <= {shape["x_1"] for shape in found.held_out}
    right = "def scaled(x, weight):\n    return x * (weight / weight.numel())\n"
    assert verdict_on(found, TORCH + right, tmp_path) == Accepted()
    assert isinstance(verdict_on(found, TORCH + right.replace("weight.numel()", "96"), tmp_path), Rejected)


def test_odd_sizes_even_sizes_and_a_larger_batch_are_held_out(tmp_path: Path, walls: Walls) -> None:
    found = ask(SCALE, ranges=["x.1=2..512"])
    drawn = [shape["x_1"] for shape in found.held_out if shape["x_1"] not in (2, 96, 512)]
    assert {size % 2 for size in drawn} == {0, 1}
    assert any(shape["batch"] * shape["x_1"] % 2 for shape in found.held_out)
    assert any(shape["batch"] > 16 for shape in found.held_out)
    assert any(257 <= shape["batch"] <= 400 for shape in found.held_out)
    for left_out in (":, x.shape[1] // 2 * 2 :", "16:", "256:"):
        wrong = (
            f"def scaled(x, weight):\n    y = x * (weight / weight.numel())\n    y[{left_out}] = 0\n    return y\n"
        )
        verdict = verdict_on(found, TORCH + wrong, tmp_path)
        assert isinstance(verdict, Rejected)
        assert verdict.reason.code == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize("axis", ["columns", "rows"])
def test_a_size_with_each_remainder_is_held_out(axis: str, walls: Walls) -> None:
    found = ask(SCALE, ranges=["x.1=1..2048"] if axis == "columns" else [])
    name, tile = ("x_1", 16) if axis == "columns" else ("batch", 8)
    sizes = {shape[name] for shape in found.held_out if shape[name] >= tile}
    assert {size % tile for size in sizes} == set(range(tile))
    if axis == "columns":
        assert {16, 32, 64, 128, 256, 512, 1024} <= sizes
        assert {size.bit_length() for size in sizes} >= set(range(5, 12))


@pytest.mark.parametrize("wrong", ["x.shape[1] % 8 == 4", "x.shape[1] % 16 == 13", "1024 < x.shape[1] < 2048"])
def test_a_kernel_that_is_wrong_at_one_class_of_sizes_is_refused(wrong: str, tmp_path: Path, walls: Walls) -> None:
    found = ask(SCALE, ranges=["x.1=1..4096"])
    kernel = f"def scaled(x, weight):\n    y = x * (weight / weight.numel())\n    return y * 1.01 if {wrong} else y\n"
    verdict = verdict_on(found, TORCH + kernel, tmp_path)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "INCORRECT_NUMERICAL"


def test_lengths_follow_the_size_that_they_count(tmp_path: Path, walls: Walls) -> None:
    found = ask(POOL, axes=["seq=hidden.1"], ranges=["hidden.1=1..300"])
    assert found.contract.shape == {"batch": 16, "seq": 128}
    assert verdict_on(found, TORCH + POOL_RIGHT, tmp_path) == Accepted()
    hard_coded = POOL_RIGHT.replace("row[:length]", "row[:min(128, length)]")
    assert isinstance(verdict_on(found, TORCH + hard_coded, tmp_path), Rejected)


@pytest.mark.parametrize(
    ("axes", "ranges", "why"),
    [
        (["batch=hidden.3"], [], r"it has no size hidden\.3: expected one of hidden\.0, hidden\.1"),
        (["batch=hidden.0,hidden.1"], [], r"several sizes: hidden\.0 is 16, hidden\.1 is 128"),
        (["seq=hidden.1"], [], r"'seq' doesn't vary: expected --vary hidden\.1=LOW\.\.HIGH as well"),
        ([], ["hidden.1=1..100"], r"hidden\.1 is 128: expected a range around it"),
    ],
)
def test_a_size_that_cannot_vary_as_declared_is_refused(
    axes: list[str], ranges: list[str], why: str, walls: Walls
) -> None:
    with pytest.raises(ReferenceRefused, match=why):
        ask(POOL, axes=axes, ranges=ranges)


SQUARE = (
    "import torch\ndef product(a, b):\n    return a @ b\n"
    "def get_inputs():\n    return [torch.randn(16, 16), torch.randn(16, 16)]\n"
)
SQUARE_KERNEL = "def product(a, b):\n    n = {size}\n    return (a.reshape(n, n, 1) * b.reshape(1, n, n)).sum(1)\n"


def test_an_axis_may_hold_the_size_that_would_be_taken_for_the_batch(tmp_path: Path, walls: Walls) -> None:
    found = ask(SQUARE, axes=["n=a.0,a.1,b.0,b.1"], ranges=["a.0=1..40"])
    assert found.contract.shape["n"] == 16
    assert {1, 40} <= {shape["n"] for shape in found.held_out}
    assert verdict_on(found, TORCH + SQUARE_KERNEL.format(size="a.shape[0]"), tmp_path) == Accepted()
    assert isinstance(verdict_on(found, TORCH + SQUARE_KERNEL.format(size="16"), tmp_path), Rejected)


def test_the_batch_varies_in_the_range_that_is_declared(walls: Walls) -> None:
    found = ask(POOL, ranges=["lengths.0=1..100"])
    assert [(one.name, one.low, one.high) for one in found.contract.axes] == [("batch", 1, 100)]
    assert {1, 100} <= {shape["batch"] for shape in found.held_out}


def test_a_reference_runs_at_the_further_shapes_of_its_task(walls: Walls) -> None:
    found = ask(SCALE, ranges=["x.1=1..1024"], further=["batch=1..16,x_1=96", "batch=4,x_1=1024"])
    assert found.further == (
        {"batch": 4, "x_1": 96},
        {"batch": 2, "x_1": 96},
        {"batch": 1, "x_1": 96},
        {"batch": 4, "x_1": 1024},
    )
    assert not [shape for shape in found.held_out if shape in found.further]


@pytest.mark.parametrize(
    ("options", "further", "why"),
    [
        ({}, "batch=4,x_1=96", "expected sizes of batch; --axis and --vary name more axes"),
        ({}, "batch=1000000", "a call takes 1152000384 bytes: expected at most 134217728; draw larger inputs"),
        ({"ranges": ["x.1=1..1024"]}, "batch=4,x_1=2048", "expected x_1 from 1 to 1024, as --vary declares"),
    ],
)
def test_a_further_shape_that_can_not_be_asked_is_refused(
    options: dict[str, list[str]], further: str, why: str, walls: Walls
) -> None:
    with pytest.raises(ReferenceRefused, match=why):
        ask(SCALE, further=[further], **options)
