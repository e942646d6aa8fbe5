"""What is drawn is what its name says, the same for a seed, different for another."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.operation import InputKind
from forge.domain.tensors import DTYPES
from forge.lab.inputs import draw, torch_dtype
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
    shape = {"batch": rows, "hidden_size": width}
    once, again = (draw(operation, shape, dtype, kind, seed=seed) for _ in range(2))  # type: ignore[arg-type]
    for spec, tensor, same in zip(operation.inputs, once, again, strict=True):
        assert tuple(tensor.shape) == spec.sizes(shape)
        assert tensor.dtype == torch_dtype(dtype)  # type: ignore[arg-type]
        assert tensor.is_contiguous()
        assert bool(torch.isfinite(tensor).all())
        assert torch.equal(tensor, same)


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


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_normal_whatever_the_rows_are(kind: InputKind) -> None:
    weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", kind, seed=3)[1]
    assert 0.8 < float(weight.std()) < 1.2
