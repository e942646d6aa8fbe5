"""Names by content: the same value has the same bytes for ever, whatever order it was written in."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.domain.digest import Value, canonical, digest_of, sha256
from forge.domain.policy import Policy
from forge.domain.target import Target
from forge.domain.task import HeldOut
from forge.pipeline.create import create
from tests.pipeline.making import POLICY, request

numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


class Pair(Value):
    first: int
    second: dict[str, float]


def shuffled(node: object, rng: random.Random) -> object:
    if isinstance(node, dict):
        keys = list(node)
        rng.shuffle(keys)
        return {key: shuffled(node[key], rng) for key in keys}
    return [shuffled(one, rng) for one in node] if isinstance(node, list) else node


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=8), documents, max_size=5), st.integers())
def test_the_order_of_keys_does_not_change_the_bytes(document: dict[str, object], seed: int) -> None:
    other = shuffled(document, random.Random(seed))
    assert isinstance(other, dict)
    assert canonical(other) == canonical(document)
    assert digest_of(other) == sha256(canonical(document))


@given(st.integers(), st.integers(), st.dictionaries(st.text(max_size=4), st.floats(0, 1), max_size=3))
def test_values_are_equal_exactly_if_their_digests_are(one: int, two: int, second: dict[str, float]) -> None:
    bound = 2**53
    left, right = Pair(first=one % bound, second=second), Pair(first=two % bound, second=second)
    assert (left == right) == (digest_of(left) == digest_of(right))


def test_golden_bytes() -> None:
    assert canonical({"b": [1, 2.5, None, True], "a": "é"}) == '{"a":"é","b":[1,2.5,null,true]}'.encode()
    assert canonical(Target(platform="cuda", gpu="h200")) == b'{"gpu":"h200","platform":"cuda"}'


def test_golden_digests() -> None:
    assert sha256(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert (
        digest_of(Target(platform="cuda", gpu="h200"))
        == "8c8b7209f029c6a4cc5ba5d169bfe189349ce1808f31ebe12fd6ea6ef1a828fd"
    )
    assert digest_of(Policy()) == "afff0b1cddd25a98e1b09d90a6bb1643bc8f785bbcd0a43ffedae32fc021d3cf"
    assert (
        digest_of(HeldOut(salt="0" * 64, shapes=({"hidden_size": 3, "batch": 1},)))
        == "8a70e946ee1b5963cd5b2478ede97ef814bea26b62620e2b029c58f7a66ebb49"
    )


def test_a_task_is_named_by_its_family_and_its_content() -> None:
    task, _ = create(request(shape="hidden_size=64, batch=4"), policy=POLICY, rng=random.Random(1))
    same, _ = create(request(shape="batch=4,hidden_size=64"), policy=POLICY, rng=random.Random(1))
    assert task.family == "torch_rmsnorm_cpu_fp32_b4_h64"
    assert task.task_id == same.task_id == f"{task.family}_{digest_of(task)[:8]}"


def test_a_value_is_frozen_refuses_unknown_fields_and_numbers_that_are_none() -> None:
    value = Pair(first=1, second={"x": 1.0})
    with pytest.raises(ValidationError, match="frozen"):
        value.first = 2  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Pair.model_validate({"first": 1, "second": {}, "third": 3})
    for number in (float("nan"), float("inf"), float("-inf")):
        with pytest.raises(ValidationError, match="finite"):
            Pair(first=1, second={"x": number})
    with pytest.raises(ValidationError):
        Pair.model_validate({"first": 1})
