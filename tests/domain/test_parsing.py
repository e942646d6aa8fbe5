"""Names and shapes from outside: what is said is what is meant, or it is refused."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.shape_slug import shape_slug
from forge.domain.target import gpu_slug
from forge.domain.tensors import DTYPE_ALIASES, DTYPES, parse_dtype, parse_shape
from forge.errors import UsageError
from forge.platforms import PROCESSORS, find_target

AXES = ("batch", "hidden_size")
sizes = st.integers(1, 2**31)
blanks = st.text(" ", max_size=2)


@given(sizes, sizes, st.booleans(), blanks)
def test_a_shape_is_read_as_it_was_written_in_any_order(batch: int, hidden: int, turned: bool, blank: str) -> None:
    parts = [f"{blank}batch{blank}={blank}{batch}", f"hidden_size={hidden}{blank}"]
    text = ",".join(reversed(parts) if turned else parts)
    assert parse_shape(text, AXES) == {"batch": batch, "hidden_size": hidden}


@given(st.text(max_size=60))
def test_any_text_is_a_shape_of_exactly_the_axes_or_refused(text: str) -> None:
    try:
        shape = parse_shape(text, AXES)
    except UsageError:
        return
    assert set(shape) == set(AXES)
    assert all(1 <= size <= 2**31 for size in shape.values())
    assert re.fullmatch(r"[a-z0-9_=,\s]+", text)


@given(st.lists(st.sampled_from(["batch=1", "hidden_size=2", "heads=3", "batch=0", "batch=-1", "", "batch=1e3"])))
def test_only_every_axis_exactly_once_is_a_shape(items: list[str]) -> None:
    if sorted(items) == ["batch=1", "hidden_size=2"]:
        assert parse_shape(",".join(items), AXES) == {"batch": 1, "hidden_size": 2}
    else:
        with pytest.raises(UsageError):
            parse_shape(",".join(items), AXES)


@given(st.dictionaries(st.sampled_from(["batch", "hidden_size", "seq_len", "heads"]), sizes, min_size=1))
def test_a_shapes_slug_names_each_axis_once_whatever_the_order(shape: dict[str, int]) -> None:
    slug = shape_slug(shape)
    assert slug == shape_slug(dict(reversed(shape.items())))
    assert re.fullmatch(r"[a-z][0-9]+(_[a-z][0-9]+)*", slug)
    assert len(slug.split("_")) == len(shape)


@given(st.text(max_size=10) | st.sampled_from([*DTYPES, *DTYPE_ALIASES]))
def test_only_an_exact_name_is_an_element_type(text: str) -> None:
    if text in DTYPES or text in DTYPE_ALIASES:
        assert parse_dtype(text) == DTYPE_ALIASES.get(text, text)
    else:
        with pytest.raises(UsageError, match="expected one of bf16, fp16, fp32"):
            parse_dtype(text)


@given(st.text(max_size=30))
def test_a_slug_has_lower_case_letters_and_digits_only_and_stays_itself(name: str) -> None:
    slug = gpu_slug(name)
    assert set(slug) <= set(string.ascii_lowercase + string.digits)
    assert gpu_slug(slug) == slug


def test_every_processor_is_found_under_its_slug_and_the_names_people_use() -> None:
    for slug in PROCESSORS:
        assert find_target(slug).gpu == slug
        assert find_target(slug.upper()).gpu == slug
    assert find_target("RTX 4070").gpu == "rtx4070"
    for name in ("", "rtx", "rtx40700", "h200 sxm", "cpu0"):
        with pytest.raises(UsageError, match="unknown gpu"):
            find_target(name)
