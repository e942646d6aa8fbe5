"""What is wrong with a document: the field, its value, and what was expected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.candidate import Metadata
from forge.domain.digest import Value
from forge.domain.misfit import misfit
from forge.domain.policy import Policy

BASE = {"name": "a kernel", "op": "rmsnorm", "language": "cpp"}


def _said(model: type[Value], document: object) -> str:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(document)
    return misfit(refused.value, model)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"rounds": 3}, "rounds: got 3, expected at least 4"),
        ({"rounds": 4.5}, "rounds: got 4.5, expected a whole number"),
        ({"sanitizer": 3}, "sanitizer: got 3, expected true or false"),
        ({"baselines": "eager"}, "baselines: got 'eager', expected a list"),
        ({"control_half_width": 0}, "control_half_width: got 0, expected more than 0.0"),
        ({"process_pairs": 65}, "process_pairs: got 65, expected at most 64"),
    ],
)
def test_a_policys_field_is_named_with_its_value_and_what_was_expected(document: object, said: str) -> None:
    assert _said(Policy, document) == said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"cpp": 3}, "cpp: got 3, expected named fields"),
        ({"cpp": {"flags": ["-O3", "-mavx2"]}}, "cpp.flags.1: got '-mavx2', expected one of -O0 to -O3, -Ofast, "),
        ({"cpp": {"flags": ["-O3\n"]}}, "cpp.flags.0: got '-O3\\n', expected one of -O0 to -O3, "),
        ({"cuda": {"flags": ["-O3", "-Xptxas"]}}, "cuda.flags.1: got '-Xptxas', expected one of -O0 to -O3, --use"),
        ({"claims": [{"metric": "speedup"}]}, "claims.0.value: missing, expected this field"),
        ({"claims": [{"metric": "speedup", "value": 1, "n": 2}]}, "claims.0.n: got 2, expected no such field"),
        ({"axis": "tile"}, "axis: got 'tile', expected one axis, since one figure shows one change: algorithm, "),
        ({"tolerance": {"y": "b"}}, "tolerance.y: got 'b', expected a number"),
    ],
)
def test_a_place_within_metadata_is_named_in_full(more: dict[str, object], said: str) -> None:
    assert _said(Metadata, BASE | more).startswith(said)


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=300), inner),
    max_leaves=20,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(list(Metadata.model_fields)) | st.text(max_size=400), DOCUMENTS, max_size=3))
def test_whatever_is_wrong_is_said_on_one_short_line_that_a_terminal_may_show(document: dict[str, object]) -> None:
    try:
        Metadata.model_validate(document)
    except ValidationError as error:
        said = misfit(error, Metadata)
        assert said.isprintable()
        assert len(said) < 1000
