"""One seed gives one examination: the same shapes and the same contents, in the same order."""

from dataclasses import replace

import pytest

from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import NotAsked, Passed
from forge.lab.gates import GATES
from forge.lab.inputs.seeded import SEED_BITS, Seeded, new_seed
from tests.candidates import job_for

RIGHT = """
def fused_add_rmsnorm(x, residual, weight, eps):
    h = x + residual
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return h * scale * weight, h
"""
TIMED = frozenset({"leaks", "endurance"})
"""Gates that ask as many calls as fit into their time."""


def asked(seed: int) -> dict[str, list[int]]:
    """The seeds of each gate's cases."""
    job = replace(job_for(RIGHT, language="torch"), seed=seed)
    found: dict[str, list[int]] = {}
    with (
        staged(job, staged_files(job, ()), {}) as stage,
        loaded(job, stage, job.limits(120.0), label="load") as kernel,
    ):
        assert isinstance(kernel, LoadedKernel), kernel
        for gate in GATES:
            if gate.name in TIMED:
                continue
            before = len(kernel.seeds)
            kernel.begin(gate.name)
            finding = gate.examine(kernel)
            assert isinstance(finding, Passed | NotAsked), finding
            found[gate.name] = [*kernel.seeds[before:], kernel.rng.getrandbits(SEED_BITS)]
    return found


@pytest.mark.usefixtures("walls")
def test_one_seed_asks_the_same_and_another_seed_asks_something_else() -> None:
    first, again, other = asked(11), asked(11), asked(12)
    assert first == again
    assert all(set(first[name]).isdisjoint(other[name]) for name in first)


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
