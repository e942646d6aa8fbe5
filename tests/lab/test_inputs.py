"""What is drawn is what its name says, the same for a seed, different for another."""

from typing import get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.input_kind import REFERENCE_KINDS, InputKind
from forge.domain.tensors import DTYPES, DType, LogSums
from forge.lab.inputs.draw import draw, torch_dtype
from forge.lab.inputs.special_rows import PATTERNS
from forge.lab.judge.reference_call import outputs_of
from forge.operations import OPERATIONS, find_operation

KINDS: tuple[InputKind, ...] = tuple(kind for kind in get_args(InputKind) if kind not in REFERENCE_KINDS)
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
        empty = tensor.float().isneginf() & isinstance(spec.values, LogSums)
        assert special or bool((torch.isfinite(tensor.float()) | empty).all())
        assert bool(((tensor == same) | (tensor.float().isnan() & same.float().isnan())).all())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "zeros"])
def test_another_seed_gives_other_values(kind: InputKind) -> None:
    assert not torch.equal(rows_of(kind, 1), rows_of(kind, 2))


def test_kinds_are_what_their_names_say() -> None:
    assert rows_of("uniform").abs().max() <= 1
    assert rows_of("large").abs().median() > 1e5
    assert rows_of("small").abs().median() < 1e-5
    assert bool(((rows_of("offset_mean").mean(1).abs() - 1000).abs() < 1).all())
    assert int((rows_of("sparse") != 0).sum()) < 0.1 * 8 * 400
    assert bool((rows_of("constant") == rows_of("constant")[:, :1]).all())
    assert not bool(rows_of("zeros").any())
    outliers = (rows_of("outlier_channel").abs() > 6).sum(1).tolist()
    assert outliers.count(1) == 5 - outliers.count(0)
    assert max(outliers) == 8
    assert (rows_of("single") != 0).sum(1).tolist() == [1] * 8
    slopes = rows_of("ordered").diff(dim=1)
    rising, falling = (slopes >= 0).all(1), (slopes <= 0).all(1)
    assert {int(rising.sum()), int(falling.sum()), int((~rising & ~falling).sum())} == {2, 3}
    padded = rows_of("padded") == 0
    assert bool(padded[:4, :200].all() and padded[4:, 200:].all() and not padded[:4, 200:].any())
    assert sorted(rows_of("rows_apart").abs().amax(1).log2().round().tolist())[::7] == [-18, 22]


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
    count = len(PATTERNS)
    shape = {"batch": 2 * count, "hidden_size": 64}
    x, residual, weight = draw(
        find_operation("fused_add_rmsnorm"), shape, "fp32", "special_rows", seed=4 * len(PATTERNS)
    )
    for number, operand in enumerate((x, residual)):
        other = operand[count * (1 - number) :][:count]
        own = operand[count * number :][:count]
        assert bool(other.isfinite().all())
        assert own.isnan().sum(1).tolist() == [0, 1, 1, 0, 0, 0, 0, 2, 64, 0, 0, 1, 0, 0, 0]
        assert own[:3].signbit().logical_and(own[:3].isnan()).sum(1).tolist() == [0, 0, 1]
        assert own.isposinf().sum(1).tolist() == [0, 0, 0, 1, 0, 1, 3, 1, 0, 64, 0, 0, 0, 0, 0]
        assert own.isneginf().sum(1).tolist()[:12] == [0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 64, 0]
        assert bool(own[11, -1].isnan())
        in_front, behind, most = own[12:].isneginf()
        assert bool(in_front.diff().sum() <= 1)
        assert not bool(in_front[-1])
        assert not bool(behind[0])
        assert int(most.sum()) == 64 - 3
    assert bool(weight.isfinite().all())


def test_zeros_stand_beside_special_values_and_not_beside_usual_ones() -> None:
    shape = {"batch": 2 * len(PATTERNS), "hidden_size": 64}
    gate, up = draw(find_operation("silu_mul"), shape, "fp32", "special_rows", seed=4 * len(PATTERNS))
    zeros = [(one == 0).sum(1).tolist() for one in (up[: len(PATTERNS)], gate[len(PATTERNS) :])]
    assert zeros == [[0, *[16] * (len(PATTERNS) - 1)]] * 2


def test_a_single_row_has_each_pattern_of_special_values_in_some_draw() -> None:
    """It always had the first pattern, which leaves a row as it is: decoding asks one row."""
    rows = [
        draw(find_operation("fused_add_rmsnorm"), {"batch": 1, "hidden_size": 64}, "fp32", "special_rows", seed=seed)
        for seed in range(2 * len(PATTERNS), 4 * len(PATTERNS))
    ]
    for operand in range(2):
        special = [row[operand] for row in rows if not bool(row[operand].isfinite().all())]
        assert len(special) == len(PATTERNS) - 1
        assert sum(bool(one.isnan().any()) for one in special) == 5


@pytest.mark.parametrize(("dtype", "lowest"), [("fp32", -(2.0**100)), ("fp16", -65504.0)])
def test_finite_masks_leave_the_back_the_front_three_elements_or_nothing(dtype: DType, lowest: float) -> None:
    seen = set()
    for seed in range(8):
        x = draw(find_operation("softmax"), {"batch": 8, "hidden_size": 64}, dtype, "masked", seed=seed)[0]
        masked = x == lowest
        assert bool((x[~masked].abs() < 8).all())
        for row in masked:
            left = (~row).nonzero().flatten().tolist()
            whole = left == list(range(left[0], left[0] + len(left))) if left else False
            ends = ("back" if row[0] else "front") if whole and row[0] != row[-1] else ""
            seen.add(ends or len(left))
    assert seen >= {"back", "front", 3, 0}
    assert seen <= {"back", "front", 3, 0, 64, 1}


def test_special_weights_stand_anywhere_one_of_them_last() -> None:
    places = set()
    for seed in range(8):
        x, weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", "special_weights", seed=seed)
        assert bool(x.isfinite().all())
        assert not bool(weight[-1].isfinite())
        assert [int(mask.sum()) for mask in (weight.isnan(), weight.isposinf(), weight.isneginf())] == [1, 1, 1]
        places.add(tuple((~weight.isfinite()).nonzero().flatten().tolist()))
    assert len(places) > 4


def test_shifted_operands_make_products_of_one_sign_by_rows() -> None:
    q, k, _ = draw(
        find_operation("attention_decode"),
        {"tokens": 4, "kv_len": 33, "kv_heads": 1, "group": 1, "head_dim": 64},
        "fp32",
        "offset_operands",
        seed=1,
    )
    signs = {(float(a.mean()) > 0, float(b.mean()) > 0) for a, b in zip(q, k, strict=True)}
    assert len(signs) == 4


def test_weights_near_one_are_near_one_and_none_of_them_exactly() -> None:
    weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", "weights_near_one", seed=1)[1]
    assert 0.01 < float((weight - 1).abs().mean()) < 0.1
    assert bool((weight != 1).all())


def test_weights_beside_rows_far_apart_exceed_the_range_of_fp16_unless_they_are_in_fp16() -> None:
    for dtype in DTYPES:
        weight = draw(find_operation("rmsnorm"), SHAPE, dtype, "rows_apart", seed=1)[1].double().abs()
        assert (float(weight.max()) > 65504) == (dtype != "fp16")
        assert weight.max() > 2**20 * weight.median() or dtype == "fp16"
        assert bool((weight > 0).all())


@pytest.mark.parametrize("rows", [1, 7, 50])
def test_each_column_is_large_in_exactly_one_row(rows: int) -> None:
    shape = {"batch": rows, "hidden_size": 400}
    large = draw(find_operation("rmsnorm"), shape, "bf16", "large_columns", seed=1)[0] > 150
    assert large.sum(0).tolist() == [1] * 400
    assert set(large.sum(1).tolist()) <= {400 // rows, -(-400 // rows)}


def test_rows_of_zeros_stand_between_others() -> None:
    zero = (rows_of("zero_rows") == 0).all(1)
    assert bool(zero[0])
    assert not bool(zero.all())


def test_weights_are_zeros_of_either_sign_or_one_number() -> None:
    zeros = draw(find_operation("rmsnorm"), SHAPE, "fp32", "zero_weights", seed=1)[1]
    assert not bool(zeros.any())
    assert 0 < int(zeros.signbit().sum()) < zeros.numel()
    equal = {
        float(draw(find_operation("rmsnorm"), SHAPE, "fp32", "equal_weights", seed=seed)[1].unique())
        for seed in range(20)
    }
    assert 1.0 in equal
    assert len(equal) > 2


def test_rows_far_apart_have_any_size_between_the_extremes() -> None:
    sizes = torch.cat(
        [
            draw(find_operation("rmsnorm"), {**SHAPE, "batch": 4}, "fp32", "rows_apart", seed=seed)[0].std(-1).log2()
            for seed in range(100)
        ]
    )
    assert all(bool(((sizes > low) & (sizes < low + 4)).any()) for low in range(-20, 17))


OTHER_WEIGHTS = (
    *("integers", "large", "offset_operands", "rows_apart", "special_weights", "weights_near_one"),
    *("zero_weights", "equal_weights", "mixed"),
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OTHER_WEIGHTS])
def test_weights_are_normal_whatever_the_rows_are(kind: InputKind) -> None:
    weight = draw(find_operation("rmsnorm"), SHAPE, "fp32", kind, seed=3)[1]
    assert 0.8 < float(weight.std()) < 1.2


def test_mixed_values_reach_every_size_sign_order_and_relation() -> None:
    operation, seen = find_operation("layernorm"), set[str]()
    for seed in range(200):
        x, weight, bias = draw(operation, {"batch": 4, "hidden_size": 60}, "fp32", "mixed", seed=seed)
        power = float(x.abs().max().clamp(min=1e-30).log10())
        seen.add(f"1e{3 * (power // 3):.0f}")
        if not x.any() or not weight.any():
            seen.add("zero")
            continue
        positive, rising = x > 0, x.diff(dim=-1) >= 0
        seen |= {"alike"} if bool(positive.all() or not positive.any()) else set()
        seen |= {"in turn"} if bool((positive[:, ::2] != positive[:, 1::2]).all()) else set()
        seen |= {"rising"} if bool(rising.all()) else {"falling"} if not rising.any() else set()
        seen |= {"equal"} if torch.equal(weight, bias) else {"opposite"} if torch.equal(weight, -bias) else set()
    named = {"zero", "alike", "in turn", "rising", "falling", "equal", "opposite"}
    assert {f"1e{power}" for power in range(-9, 10, 3)} | named <= seen


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_an_operation_stays_finite_on_mixed_values(name: str, dtype: DType) -> None:
    operation = find_operation(name)
    shape = {**dict.fromkeys(operation.axes, 2), operation.row_axis: 3, operation.reduced_axis: 300}
    for seed in range(40 if dtype in operation.dtypes else 0):
        inputs = draw(operation, shape, dtype, "mixed", seed=seed)
        outputs = outputs_of(operation, operation.reference, inputs, tuple(operation.scalars.values()))
        assert all(bool(one.float().isfinite().all()) for one in outputs)


def test_equal_operands_are_equal_wherever_their_sizes_are() -> None:
    x, weight, bias = draw(find_operation("layernorm"), SHAPE, "fp32", "equal_operands", seed=1)
    assert torch.equal(weight, bias)
    assert x.shape != weight.shape
    x, w = draw(find_operation("matmul"), {"m": 5, "k": 5, "n": 5}, "bf16", "equal_operands", seed=1)
    assert torch.equal(x, w)


def test_ties_are_whole_numbers_and_half_of_the_rows_have_small_ones() -> None:
    ties = rows_of("ties")
    assert torch.equal(ties, ties.round())
    assert ((ties.abs().amax(1) <= 2).sum(), (ties.abs().amax(1) > 4).sum()) == (4, 4)
