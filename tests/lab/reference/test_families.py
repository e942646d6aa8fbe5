import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.own_operation import Among, Generated, Integers, Normal, Uniform
from forge.lab.reference.families import KINDS, draw_family, family_of

UNIFORM = st.tuples(st.floats(-100, 100), st.floats(0.1, 100)).map(lambda pair: Uniform(low=pair[0], high=sum(pair)))
KIND = st.sampled_from(("normal", *KINDS))


def _drawn(sizes: tuple[int, ...], *, seeds: int = 2) -> list[torch.Tensor]:
    return [torch.rand(sizes, generator=torch.Generator().manual_seed(seed)) for seed in range(seeds)]


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
def test_no_kind_of_values_leaves_the_range_that_was_seen(family: Uniform, kind: str, seed: int) -> None:
    values = draw_family(family, (7, 5), kind, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
    slack = 1e-5 * (abs(family.low) + abs(family.high))
    assert values.shape == (7, 5)
    assert float(values.min()) >= family.low - slack
    assert float(values.max()) <= family.high + slack


@given(KIND, st.integers(0, 2**31))
def test_the_same_seed_gives_the_same_values(kind: str, seed: int) -> None:
    family = Normal(mean=0.5, deviation=2.0)
    one, other = (
        draw_family(family, (7, 5), kind, torch.Generator().manual_seed(seed))  # type: ignore[arg-type]
        for _ in range(2)
    )
    assert torch.equal(one, other)
