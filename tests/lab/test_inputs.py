"""What is drawn is what its name says, the same for a seed, different for another."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.operation import InputKind
from forge.domain.tensors import DTYPES
from forge.lab.inputs import SPECIAL_ROWS, draw, torch_dtype
from forge.operations import OPERATIONS, find_operation

KINDS: tuple[InputKind, ...] = get_args(InputKind)
SHAPE = {"batch": 8, "hidden_size": 400}


def rows_of(kind: InputKind, seed: int = 1, dtype: str = "fp32") -> torch.Tensor:
    return draw(find_operation("rmsnorm"), SHAPE, dtype, kind, seed=seed)[0]  # type: ignore[arg-type]


@given(
    st.sampled_from(sorted(OPERATIONS)),
    st.sampled_from(KINDS),
    st.sampled_from(DTYPES),
    st.integers(0, 5),
    st.integers(1, 40),
    st.integers(0, 2**48 - 1),
)
def test_a_draw_has_its_forms_is_finite_and_repeats(
    name: str, kind: InputKind, dtype: str, rows: int, width: int, seed: int
) -> None:
    operation = find_operation(name)
    shape = {**dict.fromkeys(operation.axes, 2), operation.row_axis: rows, operation.reduced_axis: width}
    once, again = (draw(operation, shape, dtype, kind, seed=seed) for _ in range(2))  # type: ignore[arg-type]
    special = kind in ("special_rows", "special_weights")
    for spec, tensor, same in zip(operation.inputs, once, again, strict=True):
        assert tuple(tensor.shape) == spec.sizes(shape)
        assert tensor.dtype == torch_dtype(spec.element_type(dtype))  # type: ignore[arg-type]
        assert tensor.is_contiguous()
        assert special or bool(torch.isfinite(tensor).all())
        assert bool(((tensor == same) | (tensor.isnan() & same.isnan())).all())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "zeros"])
def test_another_seed_gives_other_values(kind: InputKind) -> None:
    assert not torch.equal(rows_of(kind, 1), rows_of(kind, 2))


def test_kinds_are_what_their_names_say() -> None:
    assert rows_of("uniform").abs().max() <= 1
    assert rows_of("large").abs().median() > 1e5
    assert rows_of("small").abs().median() < 1e-5
    assert abs(rows_of("offset_mean").mean() - 1000) < 1
    assert int((rows_of("sparse") != 0).sum()) < 0.1 * 8 * 400
    assert bool((rows_of("constant") == rows_of("constant")[:, :1]).all())
    assert not bool(rows_of("zeros").any())
    by_channel = rows_of("outlier_channel").square().mean(0)
    assert int((by_channel > 1000).sum()) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_of_two_large_values_stays_in_range(dtype: str) -> None:
    large = rows_of("large", dtype=dtype)
    assert bool(torch.isfinite(large + large).all())


def test_tiny_values_are_normal_numbers_whose_squares_vanish() -> None:
    for dtype, size in (("fp32", 2.0**-100), ("bf16", 2.0**-100), ("fp16", 2.0**-10)):
        tiny = rows_of("tiny", dtype=dtype).double().abs()
        assert bool((tiny >= size).all())
        assert bool((tiny <= 2 * size).all())
        assert tiny.min() > torch.finfo(torch_dtype(dtype)).smallest_normal  # type: ignore[arg-type]


def test_subnormal_values_are_subnormal() -> None:
    for dtype in DTYPES:
        values = rows_of("subnormal", dtype=dtype).abs()
        assert values.max() < torch.finfo(values.dtype).smallest_normal
        assert bool(values.any())


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_integers_are_exact(dtype: str) -> None:
    x, residual, weight = draw(find_operation("fused_add_rmsnorm"), SHAPE, dtype, "integers", seed=1)  # type: ignore[arg-type]
    assert torch.equal(x, x.round())
    assert int(x.abs().max()) == 4
    assert torch.equal((x + residual).double(), x.double() + residual.double())
    squares = (x + residual).float().square()
    assert torch.equal(squares.cumsum(-1)[:, -1].double(), squares.double().sum(-1))
    assert set(torch.frexp(weight.float())[0].abs().tolist()) == {0.5}


def test_every_special_value_stands_alone_and_in_whole_rows_of_each_operand() -> None:
    shape = {"batch": 2 * len(SPECIAL_ROWS), "hidden_size": 16}
    x, residual, weight = draw(find_operation("fused_add_rmsnorm"), shape, "fp32", "special_rows", seed=1)
    for number, operand in enumerate((x, residual)):
        other = operand[len(SPECIAL_ROWS) * (1 - number) :][: len(SPECIAL_ROWS)]
        own = operand[len(SPECIAL_ROWS) * number :][: len(SPECIAL_ROWS)]
        assert bool(other.isfinite().all())
        assert own.isnan().sum(1).tolist() == [0, 1, 0, 0, 0, 16, 0, 0]
        assert own.isposinf().sum(1).tolist() == [0, 0, 1, 0, 1, 0, 16, 0]
        assert own.isneginf().sum(1).tolist() == [0, 0, 0, 1, 1, 0, 0, 16]
    assert bool(weight.isfinite().all())
    special = draw(find_operation("rmsnorm"), SHAPE, "fp32", "special_weights", seed=1)
    assert bool(special[0].isfinite().all())
    assert [int(mask.sum()) for mask in (special[1].isnan(), special[1].isposinf(), special[1].isneginf())] == [
        1,
        1,
        1,
    ]


def test_weights_near_one_are_near_one_and_none_of_them_exactly() -> None:
    weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", "weights_near_one", seed=1)[1]
    assert 0.01 < float((weight - 1).abs().mean()) < 0.1
    assert bool((weight != 1).all())


def test_rows_of_zeros_stand_between_others() -> None:
    zero = (rows_of("zero_rows") == 0).all(1)
    assert bool(zero[0])
    assert not bool(zero.all())


OTHER_WEIGHTS = ("integers", "large", "special_weights", "weights_near_one")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHER_WEIGHTS])
def test_weights_are_normal_whatever_the_rows_are(kind: InputKind) -> None:
    weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", kind, seed=3)[1]
    assert 0.8 < float(weight.std()) < 1.2
