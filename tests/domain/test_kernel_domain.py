"""A domain holds what it says, refuses what makes no sense, and is read back from its text and its JSON."""

import contextlib

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.candidate import Metadata
from forge.domain.covering import uncovered
from forge.domain.digest import canonical
from forge.domain.domain_text import parse_domain
from forge.domain.kernel_domain import AxisDomain, KernelDomain, effective_layouts
from forge.domain.misfit import misfit
from forge.domain.tensors import TensorSpec
from forge.errors import UnknownName, UsageError
from tests.domain.domains import AXES, domains, shapes

CONTRACT = ("contiguous", "offset")
MATMUL = (
    TensorSpec(name="a", axes=("m", "k")),
    TensorSpec(name="b", axes=("k", "n")),
    TensorSpec(name="c", axes=("m", "n")),
)


def domain(text: str) -> KernelDomain:
    return parse_domain(text, AXES)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("k <= 65536", {"m": 0, "k": 65536, "n": 1}, {"m": 1, "k": 65537, "n": 1}),
        ("m % 128 == 0", {"m": 256, "k": 1, "n": 1}, {"m": 129, "k": 1, "n": 1}),
        ("k >= 2", {"m": 1, "k": 2, "n": 1}, {"m": 1, "k": 1, "n": 1}),
        ("k in 64|128", {"m": 1, "k": 128, "n": 1}, {"m": 1, "k": 96, "n": 1}),
        ("n % k == 0", {"m": 1, "k": 3, "n": 9}, {"m": 1, "k": 3, "n": 10}),
        ("m * n <= 100", {"m": 10, "k": 1, "n": 10}, {"m": 10, "k": 1, "n": 11}),
        ("m <= k", {"m": 4, "k": 4, "n": 1}, {"m": 5, "k": 4, "n": 1}),
    ],
)
def test_a_condition_holds_up_to_its_edge(text: str, inside: dict[str, int], outside: dict[str, int]) -> None:
    found = domain(text)
    assert found.contains(inside)
    assert not found.contains(outside)
    assert found.broken(outside) == text


def test_a_named_axis_begins_at_its_first_multiple() -> None:
    assert AxisDomain(multiple_of=128).low == 128
    assert AxisDomain(least=0, multiple_of=128).low == 0
    assert AxisDomain(most=1000, multiple_of=128).high == 896


def test_a_shape_without_a_named_axis_lies_outside() -> None:
    assert not domain("k <= 5").contains({"m": 1})
    assert not domain("n % k == 0").contains({"n": 4})


def test_nothing_is_a_multiple_of_zero() -> None:
    assert not domain("n % k == 0").contains({"m": 1, "k": 0, "n": 0})


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "an empty domain: expected at least one condition"),
        ({"axes": {"m": {"least": 9, "most": 8}}}, "no size lies in it (size >= 9 and size <= 8)"),
        ({"axes": {"m": {"least": 130, "most": 200, "multiple_of": 128}}}, "no size lies in it"),
        ({"axes": {"m": {}}}, "nothing is said of the axis"),
        ({"axes": {"m": {"values": []}}}, "expected at least 1 of them"),
        ({"axes": {"m": {"values": [3], "multiple_of": 2}}}, "3 is listed in values, but not size % 2 == 0"),
        ({"axes": {"m": {"values": [3, 3]}}}, "listed twice"),
        ({"axes": {"m": {"least": -1}}}, "expected at least 0"),
        ({"axes": {"m": {"multiple_of": 0}}}, "expected at least 1"),
        ({"axes": {"m": {"atleast": 1}}}, "expected no such field"),
        ({"axes": {"M": {"least": 1}}}, "expected text of the form"),
        ({"relations": [{"kind": "divisible", "axis": "m", "by": "m"}]}, "names an axis twice"),
        ({"relations": [{"kind": "product", "axes": ["m"], "most": 0}]}, "expected at least 1"),
        ({"relations": [{"kind": "sum", "axes": ["m"], "most": 1}]}, "sum"),
        ({"layouts": ["offset"]}, "expected contiguous among them"),
        ({"layouts": ["contiguous", "contiguous"]}, "each once"),
        ({"layouts": ["sparse"]}, "expected"),
        ({"alignment_bytes": 3}, "expected"),
        ({"most_elements": 0}, "expected at least 1"),
        ({"axes": {"m": {"least": 2**40}}}, "expected at most"),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(document: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Metadata.model_validate({"name": "k", "op": "matmul", "language": "torch", "domain": document})
    message = misfit(refused.value, Metadata)
    assert message.startswith("domain")
    assert said in message


@pytest.mark.parametrize(
    "text",
    ["", "k", "k < 5", "k <= five", "k <= 5, k <= 6", "K <= 5", "k in ", "elements >= 5", "k <= 5;", "k * k <= 9"],
)
def test_a_text_that_is_no_domain_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        domain(text)


def test_an_unknown_axis_is_named() -> None:
    with pytest.raises(UnknownName, match="hidden"):
        domain("hidden <= 5")


@given(st.text(max_size=60))
def test_any_text_is_a_domain_or_one_clear_error(text: str) -> None:
    with contextlib.suppress(UsageError, UnknownName):
        assert domain(text).conditions


@given(domains())
def test_a_domain_is_read_back_from_its_text_and_its_json(found: KernelDomain) -> None:
    assert domain(found.text) == found
    assert KernelDomain.model_validate(orjson.loads(canonical(found))) == found


@given(domains(), shapes())
def test_a_shape_lies_inside_exactly_if_no_condition_is_broken(found: KernelDomain, shape: dict[str, int]) -> None:
    each = [domain(condition) for condition in found.conditions]
    ranges = all(sizes.contains(shape[axis]) for axis, sizes in found.axes.items())
    assert found.contains(shape) == (ranges and all(one.contains(shape) for one in each if not one.axes))


@pytest.mark.slow
@settings(max_examples=300)
@given(domains(), domains(), shapes())
def test_a_domain_that_covers_another_holds_all_of_it(
    declared: KernelDomain, wanted: KernelDomain, shape: dict[str, int]
) -> None:
    if uncovered(declared, wanted, CONTRACT) is None and wanted.contains(shape):
        assert declared.contains(shape)
        assert set(effective_layouts(wanted, CONTRACT)) <= set(effective_layouts(declared, CONTRACT))


@pytest.mark.parametrize(
    ("declared", "wanted", "missing"),
    [
        ("k <= 65536", "k <= 65536", None),
        ("k <= 65536", "k <= 65537", "k <= 65536"),
        ("k <= 65536", "m <= 8", "k <= 65536"),
        ("m % 64 == 0", "m % 128 == 0", None),
        ("m % 128 == 0", "m % 64 == 0", "m % 128 == 0"),
        ("k in 64|128|256", "k in 64|256", None),
        ("k in 64|128", "k in 64|256", "k in 64|128"),
        ("k % 16 == 0", "k in 64|80", None),
        ("m * n <= 4096", "m <= 64, n <= 64", None),
        ("m * n <= 4096", "m <= 64, n <= 65", "m * n <= 4096"),
        ("n % k == 0", "n % 64 == 0, k in 1|2|32", None),
        ("n % k == 0", "n % 64 == 0, k in 1|3", "n % k == 0"),
        ("m <= k", "m <= 8, k >= 8", None),
        ("layouts in contiguous", "k <= 8", "layouts in contiguous"),
        ("layouts in contiguous, k <= 8", "layouts in contiguous, k <= 8", None),
        ("alignment == 16, k <= 8", "k <= 8", "alignment == 16"),
        ("alignment == 16, k <= 8", "alignment == 32, k <= 8", None),
    ],
)
def test_a_domain_covers_what_it_can_be_shown_to_hold(declared: str, wanted: str, missing: str | None) -> None:
    assert uncovered(domain(declared), domain(wanted), CONTRACT) == missing
    assert uncovered(None, domain(wanted), CONTRACT) is None


def test_a_limit_on_elements_is_one_on_every_operand() -> None:
    found = domain("elements <= 4096").resolved(MATMUL)
    assert found.conditions == ("m * k <= 4096", "k * n <= 4096", "m * n <= 4096")
    assert found.resolved(MATMUL) == found


def test_a_limit_on_elements_counts_fixed_sizes_and_is_refused_below_them() -> None:
    fixed = TensorSpec(name="w", axes=("m", "64"), times={"m": 2})
    assert domain("elements <= 1280").resolved([fixed]).contains({"m": 10})
    assert not domain("elements <= 1280").resolved([fixed]).contains({"m": 11})
    with pytest.raises(ValueError, match="'w' always has 128"):
        domain("elements <= 100").resolved([fixed])
