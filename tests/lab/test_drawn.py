"""Positions drawn by a given number: right where the number falls, and as often as the weights say."""

import dataclasses
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.candidate import Metadata
from forge.domain.policy import Policy
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.gates.distribution import DRAWS, FALSE_ALARM, LARGEST_BELOW_ONE, examine_distribution
from forge.lab.inputs.draw import draw
from forge.lab.judge import chance_of, judge
from forge.operations import reference_source
from forge.operations.operation import Drawn
from forge.operations.sampling import SAMPLING, VARIANTS, oracle, sampling
from tests.candidates import job_for

NEAR = 1e-6
weights = st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0, 10.0]), min_size=2, max_size=12).filter(any)
shares = st.floats(min_value=0.0, max_value=0.999999, allow_nan=False)


def drawn(one: list[float], share: float, uncertainty: float = NEAR) -> Drawn:
    row = torch.tensor([one], dtype=torch.float64)
    return Drawn(
        weights=row,
        allowed=row > 0,
        share=torch.tensor([share], dtype=torch.float64),
        uncertainty=torch.tensor([uncertainty], dtype=torch.float64),
    )


def within(got: int, expected: Drawn) -> bool:
    position = torch.tensor([got], dtype=torch.int32)
    return judge(position, expected, position, dtype="fp32", policy=Policy()).within


@given(weights, shares)
def test_the_position_that_the_share_falls_on_is_always_right(one: list[float], share: float) -> None:
    expected = drawn(one, share)
    assert within(int(expected.value[0]), expected)


@given(weights, shares)
def test_any_other_position_is_right_only_beside_a_boundary(one: list[float], share: float) -> None:
    expected = drawn(one, share)
    boundaries = torch.tensor([0.0, *one]).double().cumsum(0) / sum(one)
    near = bool(((boundaries - share).abs() <= 2 * NEAR).any())
    others = [place for place in range(len(one)) if place != int(expected.value[0])]
    assert near or not any(within(place, expected) for place in others)


@given(weights, shares)
def test_a_position_without_a_weight_is_never_right(one: list[float], share: float) -> None:
    expected = drawn(one, share, uncertainty=1.0)
    assert [within(place, expected) for place in range(len(one))] == [weight > 0 for weight in one]


def test_a_position_that_isnt_there_is_wrong() -> None:
    assert not within(-1, drawn([1.0, 1.0], 0.0, uncertainty=1.0))
    assert not within(2, drawn([1.0, 1.0], 0.999, uncertainty=1.0))


def counted(kept: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.multinomial(kept, DRAWS, replacement=True, generator=generator)


def test_honest_draws_have_the_chances_that_the_test_says() -> None:
    """Of 200 series, about as many below a tenth and a hundredth as there should be; none near a false alarm."""
    generator = torch.Generator().manual_seed(1)
    odds = torch.randn(64, generator=generator).exp()
    found = torch.tensor([chance_of(counted(odds, generator), odds) for _ in range(200)])
    assert 0.05 < float((found < 0.1).double().mean()) < 0.15
    assert float((found < 0.01).double().mean()) < 0.04
    assert float(found.min()) > 1000 * FALSE_ALARM


@pytest.mark.parametrize(
    "biased",
    [
        lambda odds: odds.sqrt(),
        lambda odds: odds.square(),
        lambda odds: torch.ones_like(odds),
        lambda odds: odds * (odds > odds.median()),
        lambda odds: odds * torch.linspace(0.8, 1.2, odds.shape[0]),
    ],
    ids=["twice the temperature", "half of it", "all alike", "half of them never", "a fifth more at one end"],
)
def test_draws_of_another_distribution_are_found(biased) -> None:
    generator = torch.Generator().manual_seed(2)
    odds = torch.randn(64, generator=generator).exp()
    assert chance_of(counted(biased(odds), generator), odds) < FALSE_ALARM


def test_draws_that_are_all_the_same_are_found_unless_they_must_be() -> None:
    same = torch.zeros(DRAWS, dtype=torch.int32)
    assert chance_of(same, torch.tensor([1.0, 1.0])) < FALSE_ALARM
    assert chance_of(same, torch.tensor([1.0, 0.0])) == 1.0


def question(rows: int = 64, size: int = 100, seed: int = 3) -> tuple[torch.Tensor, ...]:
    return draw(SAMPLING, {"batch": rows, "vocab_size": size}, "fp32", "normal", seed=seed)


def test_a_token_at_the_edge_of_top_p_may_be_kept_or_dropped() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    one, k = torch.ones(1), torch.zeros(1, dtype=torch.int32)
    for top_p, u in ((0.8, 0.4), (0.8, 0.7), (0.8 + 1e-9, 0.7), (0.8 - 1e-9, 0.7)):
        (expected,) = oracle(logits, one, k, torch.tensor([top_p]), torch.tensor([u]))
        assert isinstance(expected, Drawn)
        assert within(int(sampling(logits, one, k, torch.tensor([top_p]), torch.tensor([u]))[0]), expected)
        assert bool(expected.allowed.all())
    (clear,) = oracle(logits, one, k, torch.tensor([0.7]), torch.tensor([0.7]))
    assert isinstance(clear, Drawn)
    assert clear.allowed.tolist() == [[True, True, False]]
    assert [within(token, clear) for token in range(3)] == [False, True, False]


def test_a_token_outside_the_filters_is_never_right_however_near_the_number() -> None:
    logits, heat, k, p, u = question()
    (expected,) = oracle(logits, heat, k, p, u)
    assert isinstance(expected, Drawn)
    unsure = dataclasses.replace(expected, uncertainty=torch.ones_like(expected.uncertainty))
    outside = (~expected.allowed).to(torch.int32).argmax(-1).to(torch.int32)
    rows = (~expected.allowed).any(-1).nonzero().flatten()
    assert rows.numel() > 30
    for row in rows.tolist():
        one = dataclasses.replace(
            unsure,
            weights=unsure.weights[[row]],
            allowed=unsure.allowed[[row]],
            share=unsure.share[[row]],
            uncertainty=unsure.uncertainty[[row]],
        )
        assert not within(int(outside[row]), one)


def test_equal_logits_are_kept_or_dropped_together() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    (expected,) = oracle(logits, torch.ones(1), torch.tensor([2]), torch.ones(1) * 2, torch.zeros(1))
    assert isinstance(expected, Drawn)
    assert expected.allowed.tolist() == [[True, True, True, False]]


@pytest.mark.parametrize("honest", [sampling, *VARIANTS.values()], ids=["the reference", *VARIANTS])
@pytest.mark.parametrize("u", [0.0, LARGEST_BELOW_ONE])
def test_honest_kernels_are_right_at_the_smallest_and_at_the_largest_number(honest, u: float) -> None:
    for seed in range(4):
        logits, heat, k, p, drawn_by = question(rows=32, size=1001, seed=seed)
        operands = logits, heat, k, p, torch.full_like(drawn_by, u)
        (expected,) = oracle(*operands)
        got = honest(*operands)
        assert judge(got, expected, got, dtype="fp32", policy=Policy()).within


def found_of(kernel: str) -> str | Failed:
    """What counting many draws of a kernel comes to, asked in its guest."""
    made = job_for(kernel, language="torch", shape={"batch": 4, "vocab_size": 64})
    described = {**json.loads(made.files["metadata.json"]), "op": "sampling"}
    job = dataclasses.replace(
        made, operation=SAMPLING, entry_point="sampling", metadata=Metadata.model_validate(described)
    )
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(60.0), label="test") as loaded_kernel,
    ):
        assert isinstance(loaded_kernel, LoadedKernel)
        return examine_distribution(loaded_kernel)


RIGHT = reference_source(SAMPLING).replace("def sampling", "def right")
HARDLY_EVER_WRONG = {
    "at zero": "    return torch.where(u == 0, -1, right(logits, temperature, top_k, top_p, u)).int()\n",
    "just below one": (
        "    token = right(logits, temperature, top_k, top_p, u)\n"
        "    return torch.where(u > 0.9999999, token.new_tensor(logits.shape[-1]), token)\n"
    ),
    "by a lot of its own": (
        "    own = torch.Generator().manual_seed(id(u))\n"
        "    return right(logits, temperature, top_k, top_p, torch.rand(u.shape, generator=own))\n"
    ),
}


@pytest.mark.parametrize("wrong", HARDLY_EVER_WRONG)
def test_tokens_that_are_wrong_are_found(wrong: str) -> None:
    kernel = f"{RIGHT}\n\ndef sampling(logits, temperature, top_k, top_p, u):\n    import torch\n\n"
    found = found_of(kernel + HARDLY_EVER_WRONG[wrong])
    assert isinstance(found, Failed)
    assert found.reason.code == "INCORRECT_NUMERICAL"


def test_an_honest_kernels_draws_are_counted_and_right() -> None:
    assert "draws counted" in str(found_of(reference_source(SAMPLING)))
