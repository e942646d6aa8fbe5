"""One seed gives one examination: the same shapes and the same contents, in the same order."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from forge.domain.tensors import Parts, Slots, TensorSpec
from forge.lab.asked_gates import ask
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import NotAsked, Passed
from forge.lab.gates import GATES
from forge.lab.gates.gate import Gate
from forge.lab.inputs.draw import draw
from forge.lab.inputs.integers import draw_numbers
from forge.lab.inputs.seeded import SEED_BITS, TURNS, CaseSeeds, Seeded, new_seed
from forge.lab.inputs.special_rows import PATTERNS
from forge.lab.inputs.weights import SPECIAL_VALUES
from forge.operations import OPERATIONS, find_operation
from tests.candidates import job_for

RIGHT = """
def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return h * scale * weight, h
"""
TIMED = frozenset({"leaks", "endurance"})
"""Gates that ask as many calls as fit into their time."""
FEW_GATES = 6
"""Number of gates that are asked with another seed. Chosen: all take the same generator, and these are quick."""


def asked(seed: int, gates: Sequence[Gate] = GATES) -> dict[str, list[int]]:
    """The seeds of each gate's cases."""
    job = replace(job_for(RIGHT, language="torch"), seed=seed)
    found: dict[str, list[int]] = {}
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(120.0), label="load") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel), kernel
        for gate in gates:
            if gate.name in TIMED:
                continue
            answer = ask(kernel, gate)
            assert isinstance(answer.finding, Passed | NotAsked), answer
            found[gate.name] = [*answer.seeds, kernel.rng.getrandbits(SEED_BITS)]
    return found


@pytest.mark.usefixtures("walls")
def test_one_seed_asks_the_same_and_another_seed_asks_something_else() -> None:
    first, again = asked(11), asked(11)
    assert first == again
    other = asked(12, GATES[:FEW_GATES])
    assert all(set(first[name]).isdisjoint(other[name]) for name in other)


def test_numbers_follow_from_seed_and_label_alone() -> None:
    one, same = Seeded(3, "sizes"), Seeded(3, "sizes")
    assert [one.random() for _ in range(5)] == [same.random() for _ in range(5)]
    assert Seeded(3, "sizes").getrandbits(64) != Seeded(3, "scales").getrandbits(64)
    assert Seeded(3, "sizes").getrandbits(64) != Seeded(4, "sizes").getrandbits(64)


def test_numbers_are_spread_evenly() -> None:
    rng = Seeded(6, "even")
    drawn = [rng.randrange(10) for _ in range(5000)]
    assert all(400 < drawn.count(digit) < 600 for digit in range(10))
    assert all(0 <= Seeded(seed, "unit").random() < 1 for seed in range(100))


def test_seeds_are_new_and_within_what_json_holds() -> None:
    seeds = {new_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert max(seeds) < 2**53


def test_sixteen_draws_of_two_rows_have_each_pattern() -> None:
    operation, seeds = find_operation("fused_add_rmsnorm"), CaseSeeds(Seeded(5, "specials: contents"))
    shape, full = {"batch": 2, "hidden_size": 9}, set[tuple[int, str]]()
    for seed in (seeds.next("special_rows") for _ in range(16)):
        for place, operand in enumerate(draw(operation, shape, "fp32", "special_rows", seed=seed)[:2]):
            full |= {(place, str(row[0].item())) for row in operand if len({str(one) for one in row.tolist()}) == 1}
    assert full >= {(place, value) for place in range(2) for value in ("nan", "inf", "-inf")}


def test_three_draws_have_each_special_value_in_the_last_weight() -> None:
    operation, seeds = find_operation("fused_add_rmsnorm"), CaseSeeds(Seeded(5, "specials: contents"))
    shape = {"batch": 2, "hidden_size": 9}
    for _ in range(4):
        drawn = [
            draw(operation, shape, "fp32", "special_weights", seed=seeds.next("special_weights"))[2] for _ in range(3)
        ]
        assert {str(weight[-1].item()) for weight in drawn} == {"nan", "inf", "-inf"}


def test_seeds_of_kinds_with_patterns_of_their_own_take_turns_by_themselves_and_others_together() -> None:
    seeds = CaseSeeds(Seeded(5, "contents"))
    first, own = seeds.next("normal"), seeds.next("equal_weights")
    assert (seeds.next("mixed") - first) % TURNS == 1
    assert (seeds.next("equal_weights") - own) % TURNS == 1
    assert (seeds.next("normal") - first) % TURNS == 2


def numbers(values: Parts | Slots, seeds: CaseSeeds) -> list[int]:
    """Return eight numbers of an axis of 20, as they are drawn beside mixed values."""
    spec, generator = TensorSpec(name="one", axes=("rows",), values=values), torch.Generator()
    generator.manual_seed(seeds.next("mixed"))
    drawn: list[int] = draw_numbers(spec, {"rows": 8, "size": 20}, {}, generator, usual=False).tolist()
    return drawn


@pytest.mark.parametrize("first", range(30))
def test_few_draws_have_the_rare_patterns_of_parts_and_of_slots(first: int) -> None:
    seeds = CaseSeeds(Seeded(first, "contents"))
    assert [-1] * 8 in [numbers(Slots(axis="size"), seeds) for _ in range(15)]
    parts = [sorted(numbers(Parts(axis="size"), seeds)) for _ in range(14)]
    assert [0] * 8 in parts
    assert [*[0] * 7, 20] in parts


def test_turns_fit_the_patterns_of_each_operation() -> None:
    numbers = {len(one.activations) * len(PATTERNS) for one in OPERATIONS.values()} | {len(SPECIAL_VALUES)}
    assert [TURNS % number for number in numbers] == [0] * len(numbers)
