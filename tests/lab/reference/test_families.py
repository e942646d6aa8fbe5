import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.input_kind import InputKind
from forge.domain.own_operation import Among, Family, Generated, Integers, Normal, Uniform
from forge.lab.reference.families import family_of as family_of_seen
from forge.lab.reference.family_values import OUTSIDE, draw_family
from forge.lab.reference.survey import Seen, related
from forge.lab.reference.usual_kinds import KINDS

UNIFORM = st.tuples(st.floats(-100, 100), st.floats(0.1, 100)).map(lambda pair: Uniform(low=pair[0], high=sum(pair)))
KIND = st.sampled_from(("normal", *(kind for kind in KINDS if kind not in OUTSIDE)))


def _drawn(sizes: tuple[int, ...], *, seeds: int = 2) -> list[torch.Tensor]:
    return [torch.rand(sizes, generator=torch.Generator().manual_seed(seed)) for seed in range(seeds)]


def seen_of(samples: list[torch.Tensor]) -> Seen:
    """What a survey notes of draws that reach no further ends."""
    seen = Seen()
    for one in samples:
        seen.take(one, most_sampled=2**20)
    return seen


def family_of(samples: list[torch.Tensor]) -> Family:
    """The family that a survey of these draws gives."""
    return family_of_seen(seen_of(samples))


def test_uniform_values_are_recognised_with_their_ends() -> None:
    assert family_of(_drawn((64, 64))) == Uniform(low=0.0, high=1.0)
    shifted = family_of([2 * one - 1 for one in _drawn((64, 64))])
    assert shifted == Uniform(low=-1.0, high=1.0)


def test_normal_values_are_recognised_with_mean_and_deviation() -> None:
    samples = [torch.randn(64, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    found = family_of(samples)
    assert isinstance(found, Normal)
    assert abs(found.mean) < 0.05
    assert abs(found.deviation - 1) < 0.05


@pytest.mark.parametrize("family", [Normal(mean=0.0, deviation=1.0), Uniform(low=-1.0, high=1.0)])
@pytest.mark.parametrize("rows", [1, 2, 5, 64])
def test_each_half_of_the_rows_has_outliers_at_both_ends(family: Normal | Uniform, rows: int) -> None:
    drawn = draw_family(family, (rows, 40), "outliers", torch.Generator().manual_seed(3))
    outlying = drawn.abs() > 50 if isinstance(family, Normal) else drawn.abs() > 0.9
    most = outlying.sum(-1).max()
    assert outlying.sum(-1).min() == most <= 8
    for half in (slice(0, (rows + 1) // 2), slice((rows + 1) // 2, rows)):
        assert rows < 5 or bool(outlying[half][:, [0, -1]].any(0).all())


def test_integers_keep_the_range_that_was_seen() -> None:
    samples = [torch.randint(3, 11, (500,), generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    assert family_of(samples) == Integers(low=3, high=10)


def test_integers_that_no_draw_reaches_are_left_to_the_files_own_generator() -> None:
    samples = [torch.tensor([number, -(2**63), 2**63 - 1]) for number in (3, 4)]
    assert isinstance(family_of(samples), Generated)


def test_a_few_values_and_truth_values_stay_those() -> None:
    signs = [torch.where(one < 0.5, -1.0, 1.0) for one in _drawn((500,))]
    assert family_of(signs) == Among(values=(-1.0, 1.0))
    assert family_of([one < 0.5 for one in _drawn((500,))]) == Among(values=(0.0, 1.0))


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([one.tril() for one in _drawn((32, 32))], "zeros"),
        ([one + one.T for one in _drawn((32, 32))], "symmetric"),
        ([one.softmax(-1) for one in _drawn((32, 40))], "one sum"),
        ([one.sort(-1).values for one in _drawn((32, 40))], "in order"),
        ([torch.nn.functional.normalize(one, dim=-1) for one in _drawn((32, 40))], "one length"),
        ([torch.arange(40.0)] * 2, "every seed"),
        ([one[:3] for one in _drawn((40,))], "too few"),
        ([one.pow(6) + 0.1 for one in _drawn((64, 64))], "neither"),
    ],
)
def test_values_with_a_structure_are_left_to_the_files_own_generator(samples: list[torch.Tensor], why: str) -> None:
    found = family_of(samples)
    assert isinstance(found, Generated)
    assert why in found.structure


@given(UNIFORM, KIND, st.integers(0, 2**31))
def test_only_two_kinds_of_values_leave_the_range_that_was_seen(family: Uniform, kind: str, seed: int) -> None:
    values = draw_family(family, (7, 5), kind, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
    slack = 1e-5 * (abs(family.low) + abs(family.high))
    assert values.shape == (7, 5)
    assert float(values.min()) >= family.low - slack
    assert float(values.max()) <= family.high + slack
    for outside in OUTSIDE:
        further = draw_family(family, (9, 50), outside, torch.Generator().manual_seed(seed))
        assert not bool(((family.low <= further) & (further <= family.high)).all())


@pytest.mark.parametrize("family", [Uniform(low=-1.0, high=3.0), Normal(mean=1.0, deviation=2.0)])
def test_rows_fall_or_are_above_and_below_their_middle_in_turn(family: Uniform | Normal) -> None:
    generator = torch.Generator().manual_seed(1)
    assert bool((draw_family(family, (7, 50), "falling", generator).diff(dim=-1) <= 0).all())
    around = draw_family(family, (7, 50), "alternating", generator) - 1
    assert bool((around[:, ::2] >= 0).all())
    assert bool((around[:, 1::2] <= 0).all())


@pytest.mark.parametrize("family", [Uniform(low=-1.0, high=3.0), Normal(mean=1.0, deviation=2.0)])
def test_rows_lie_wholly_on_either_side_of_the_middle(family: Uniform | Normal) -> None:
    first = set()
    for seed in range(12):
        values = draw_family(family, (3, 2, 50), "one_sided", torch.Generator().manual_seed(seed)) - 1
        above = (values >= 0).all(-1).flatten().tolist()
        assert (values <= 0).all(-1).flatten().tolist() == [not one for one in above]
        assert above == [above[0], not above[0]] * 3
        first.add(above[0])
    assert first == {True, False}


def test_whole_samples_lie_far_on_either_side_of_zero() -> None:
    first = set()
    for seed in range(12):
        drawn = draw_family(Normal(mean=1.0, deviation=2.0), (3, 2, 50), "far", torch.Generator().manual_seed(seed))
        above = (drawn > 4000).flatten(1).all(-1).tolist()
        assert (drawn < -4000).flatten(1).all(-1).tolist() == [not one for one in above]
        assert above == [above[0], not above[0], above[0]]
        first.add(above[0])
    assert first == {True, False}


@pytest.mark.parametrize("family", [Uniform(low=0.0, high=1.0), Normal(mean=0.0, deviation=2.0)])
def test_samples_of_powers_of_two_are_equal_in_pairs(family: Uniform | Normal) -> None:
    drawn = draw_family(family, (5, 3, 50), "equal_rows", torch.Generator().manual_seed(1))
    assert torch.equal(drawn[::2][:2], drawn[1::2])
    assert not torch.equal(drawn[0], drawn[2])
    assert bool((drawn.abs().frexp().mantissa == 0.5).all())


@given(KIND, st.integers(0, 2**31))
def test_the_same_seed_gives_the_same_values(kind: str, seed: int) -> None:
    family = Normal(mean=0.5, deviation=2.0)
    one, other = (
        draw_family(family, (7, 5), kind, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
        for _ in range(2)
    )
    assert torch.equal(one, other)


def _numbers(*sizes: int, seeds: int = 100, low: int = 0, high: int = 100) -> list[torch.Tensor]:
    return [torch.randint(low, high, sizes, generator=torch.Generator().manual_seed(seed)) for seed in range(seeds)]


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([one.cumsum(0) for one in _numbers(9)], "in order"),
        ([one.sort(-1).values for one in _numbers(4, 9)], "rows are in order"),
        ([torch.arange(40) < length for length in _numbers(5, 1)], "rows are in order"),
        ([one.argsort() for one in _drawn((64,), seeds=100)], "one sum"),
        ([one.argsort()[:60] for one in _drawn((64,), seeds=100)], "distinct numbers"),
        ([one.topk(8).indices for one in _drawn((16, 12), seeds=100)], "rows have distinct numbers"),
        ([one + one.T for one in _numbers(12, 12)], "symmetric"),
        ([one.tril() for one in _numbers(12, 12)], "other values at each position"),
        ([torch.cat([one[:, :1] * 0, one[:, 1:]], -1) for one in _numbers(8, 12)], "rows have other values"),
    ],
)
def test_numbers_and_masks_with_a_structure_are_left_to_the_files_own_generator(
    samples: list[torch.Tensor], why: str
) -> None:
    found = family_of(samples)
    assert isinstance(found, Generated), found
    assert why in found.structure


@pytest.mark.parametrize("sizes", [(1,), (16,), (4, 32), (2, 3, 5)])
def test_independent_numbers_and_masks_have_no_structure(sizes: tuple[int, ...]) -> None:
    assert family_of(_numbers(*sizes, seeds=256)) == Integers(low=0, high=99)
    assert family_of([one < 30 for one in _numbers(*sizes, seeds=256)]) == Among(values=(0.0, 1.0))


def test_a_relation_between_two_arguments_is_seen_and_chance_is_not() -> None:
    start, length, other = (seen_of(_numbers(16, low=low, high=low + 50)) for low in (0, 1, 2))
    one, two = _numbers(16), _numbers(16, low=1)
    end = seen_of([a + b for a, b in zip(one, two, strict=True)])
    assert related(seen_of(one), end)
    assert related(end, seen_of(one))
    assert not related(seen_of(one), seen_of(list(reversed(one))))
    mask = [torch.arange(50) < row[:, None] for row in start.whole]
    assert related(start, seen_of(mask))
    assert not related(seen_of(list(reversed(length.whole))), seen_of(mask))
    assert not related(other, seen_of(list(reversed(one))))


@given(st.sampled_from(("ends", "end_rows", "lowest", "highest")), st.integers(0, 2**31))
def test_declared_numbers_reach_their_ends_and_never_leave_them(kind: str, seed: int) -> None:
    drawn = draw_family(Integers(low=-3, high=900), (6, 5), kind, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
    reached = {int(drawn.min()), int(drawn.max())}
    assert reached <= set(range(-3, 901))
    assert reached >= {"lowest": {-3}, "highest": {900}}.get(kind, {-3, 900})


@pytest.mark.parametrize(
    "family",
    [Integers(low=0, high=40), Among(values=(0.0, 1.0)), Uniform(low=0.0, high=1.0), Normal(mean=0.0, deviation=1.0)],
)
def test_ordered_values_rise_in_each_row(family: Integers | Among | Uniform | Normal) -> None:
    drawn = draw_family(family, (4, 16), "ordered", torch.Generator().manual_seed(3))
    assert bool((drawn.diff(dim=-1) >= 0).all())
    assert drawn.unique().numel() > 1


@pytest.mark.parametrize("shape", [(4, 0), (0,), (0, 4)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", [Uniform(low=-1.0, high=3.0), Normal(mean=1.0, deviation=2.0)])
def test_an_operand_without_elements_is_drawn_in_every_kind(
    family: Uniform | Normal, kind: InputKind, shape: tuple[int, ...]
) -> None:
    assert draw_family(family, shape, kind, torch.Generator().manual_seed(1)).shape == shape


@pytest.mark.parametrize("sizes", [(6, 20), (2, 3, 7), (16,), (5, 1)])
def test_one_of_two_values_occurs_once_in_each_row(sizes: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(3)
    drawn = draw_family(Among(values=(-1.0, 2.0)), sizes, "single", generator)
    counts = (drawn.reshape(-1, sizes[-1]) == 2.0).sum(-1)
    assert drawn.unique().tolist() in ([-1.0, 2.0], [-1.0], [2.0])
    assert {int(one) for one in counts} <= {1, sizes[-1] - 1}
    assert len(counts) == 1 or sizes[-1] == 2 or len({int(one) for one in counts}) == 2
    several = Among(values=(0.0, 1.0, 2.0))
    same = (draw_family(several, (8, 8), kind, torch.Generator().manual_seed(5)) for kind in ("single", "normal"))
    assert torch.equal(*same)


def test_a_sparse_operand_has_zeros_of_either_sign() -> None:
    drawn = draw_family(Normal(mean=0.0, deviation=2.0), (64, 64), "sparse", torch.Generator().manual_seed(1))
    zeros = drawn[drawn == 0]
    assert 0 < int(zeros.signbit().sum()) < zeros.numel()
