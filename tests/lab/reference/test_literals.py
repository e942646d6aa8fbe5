"""Literals of a guest: the host takes exactly those that Python would, and evaluates none."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.lab.reference.literals import count_places, parse_literal

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.just(...),
)
KEYS = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=3)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
        st.sets(KEYS, max_size=3),
    ),
    max_leaves=8,
)
PIECES = st.sampled_from(
    [
        *"[](){},:.*+-~ ",
        "1",
        "2.5",
        "3j",
        "True",
        "...",
        "None",
        "'a'",
        "b'c'",
        "set()",
        "x",
        "x()",
        "f'{x}'",
        "**",
        "if",
    ]
)


def written(value: object) -> str:
    """The literal of a value; `repr` writes Ellipsis as a name."""
    return repr(value).replace("Ellipsis", "...")


def taken(text: str) -> bool:
    try:
        parse_literal(text)
    except (ValueError, SyntaxError):
        return False
    return True


def python_takes(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return False
    return True


@given(value=VALUES)
def test_what_a_value_is_written_as_is_taken(value: object) -> None:
    assert taken(written(value))


@given(pieces=st.lists(PIECES, min_size=1, max_size=8))
def test_a_text_is_taken_if_and_only_if_it_is_a_literal_of_python(pieces: list[str]) -> None:
    text = "".join(pieces).strip()
    assert taken(text) == python_takes(text), text


@pytest.mark.parametrize(
    "text",
    [
        "{[]: 1}",
        "{{1}: 1}",
        "{**{}}",
        "{[]}",
        "{set(): 1}",
        "-True",
        "1j + 1",
        "1j + 1j",
        "--1",
        "set([])",
        "x",
        "[x]",
    ],
)
def test_what_python_refuses_is_refused(text: str) -> None:
    assert not python_takes(text)
    assert not taken(text)


@pytest.mark.parametrize("text", ["__import__('os').getcwd()", "[].append(1)", "(lambda: 1)()", "f'{1}'", "a[0]"])
def test_nothing_that_runs_is_a_literal(text: str) -> None:
    with pytest.raises(ValueError, match="is no literal"):
        parse_literal(text)


@given(
    value=st.recursive(
        st.sampled_from([..., 1, "..."]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=2), inner, max_size=3)
            | st.tuples(inner, inner)
        ),
    )
)
def test_each_place_of_a_tensor_is_counted(value: object) -> None:
    def places(one: object) -> int:
        if isinstance(one, dict):
            return sum(map(places, one.values()))
        return sum(map(places, one)) if isinstance(one, list | tuple) else int(one is ...)

    assert count_places(parse_literal(written(value))) == places(value)
