"""What the gates ask of a candidate with a domain of its own lies in that domain, and costs about what it did."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forge.domain.domain_shapes import nearest_inside
from forge.domain.domain_text import parse_domain
from forge.domain.kernel_domain import KernelDomain
from forge.domain.tensors import DTYPES, ITEMSIZE_BYTES
from forge.lab.inputs.inside import COST_FACTOR, Inside, held_out_inside
from forge.lab.inputs.seeded import Seeded
from forge.lab.runner import GPU, INTERPRETER, PROCESSOR, Runner
from forge.operations import find_operation
from tests.domain.domains import AXES, domains, shapes

MATMUL = find_operation("matmul")
Sizes = dict[str, int]
runners = st.sampled_from([PROCESSOR, GPU, INTERPRETER])
seeds = st.integers(0, 1000)


def asked_of(domain: KernelDomain, near: Sizes, runner: Runner) -> Inside:
    """What may be asked of a candidate with this domain; its public shape is the nearest one inside."""
    public = nearest_inside(domain, near, {axis: domain.sizes_of(axis).low for axis in AXES})
    assume(domain.contains(public))
    return Inside(MATMUL, public, domain, runner)


@given(domains(), shapes(), shapes(), runners)
def test_every_shape_becomes_one_inside_and_one_inside_stays(
    domain: KernelDomain, near: Sizes, asked: Sizes, runner: Runner
) -> None:
    inside = asked_of(domain, near, runner)
    found = inside.within(asked)
    assert inside.contains(found)
    assert inside.within(found) == found
    if inside.contains(asked):
        assert found == asked


@settings(max_examples=50)
@given(domains(), shapes(), runners, seeds)
def test_the_edges_and_the_random_shapes_lie_inside(
    domain: KernelDomain, near: Sizes, runner: Runner, seed: int
) -> None:
    inside = asked_of(domain, near, runner)
    found, left_out = inside.shapes(domain, Seeded(seed, "shapes"))
    assert found
    assert all(map(domain.contains, found))
    assert left_out >= 0
    assert (found, left_out) == inside.shapes(domain, Seeded(seed, "shapes")), "one seed gives one list"


@given(domains(), shapes(), st.lists(shapes(), max_size=3), seeds)
def test_held_out_shapes_lie_inside_and_those_that_did_are_kept(
    domain: KernelDomain, near: Sizes, held_out: list[Sizes], seed: int
) -> None:
    inside = asked_of(domain, near, PROCESSOR)
    found = held_out_inside(tuple(held_out), domain, inside.public, seed)
    assert len(found) == len(held_out)
    for one, other in zip(held_out, found, strict=True):
        assert domain.contains(other)
        assert other == one or not domain.contains(one)


@given(shapes(), shapes())
def test_without_a_domain_every_shape_is_asked_as_it_is(public: Sizes, asked: Sizes) -> None:
    inside = Inside(MATMUL, public)
    assert inside.within(asked) == asked
    assert held_out_inside((asked,), None, public, 1) == (asked,)


def test_a_shape_that_costs_too_much_inside_is_made_smaller() -> None:
    rows_of_a_tile = parse_domain("n >= 65536", AXES)
    inside = Inside(MATMUL, {"m": 64, "k": 64, "n": 65536}, rows_of_a_tile)
    found = inside.within({"m": 65536, "k": 65536, "n": 1})
    assert found["n"] == 65536
    assert found["m"] * found["k"] < 65536 * 65536 // COST_FACTOR


@given(domains(), shapes(), st.sampled_from(DTYPES))
def test_inputs_begin_where_the_address_is_a_multiple(domain: KernelDomain, near: Sizes, dtype: str) -> None:
    inside = asked_of(domain, near, PROCESSOR)
    apart = inside.elements_apart(dtype)
    assert apart * ITEMSIZE_BYTES[dtype] % inside.address_bytes == 0 or apart == 1
