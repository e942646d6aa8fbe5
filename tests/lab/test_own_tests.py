"""What bench.py prints is a claim: finite positive numbers under known keys, and never an exception."""

import json
import math

from hypothesis import example, given
from hypothesis import strategies as st

from forge.lab.gates.own_tests import CLAIM_KEYS, parse_claims

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def only_claims(claims: dict[str, float]) -> bool:
    return set(claims) <= set(CLAIM_KEYS) and all(
        type(value) is float and math.isfinite(value) and value > 0 for value in claims.values()
    )


@given(st.text(max_size=300))
@example('{"speedup": NaN}')
@example('{"speedup": Infinity}')
@example('{"speedup": 1e999}')
@example('{"speedup": 1' + "0" * 400 + "}")
@example('{"speedup": ' + "9" * 5000 + "}")
@example('{"speedup": ' + "[" * 100_000 + "}")
@example('{"a":' * 30_000 + "1" + "}" * 30_000)
@example('{"speedup": 2}\r{"speedup": true}')
def test_any_output_gives_claims_and_nothing_else(output: str) -> None:
    assert only_claims(parse_claims(output))


@given(st.dictionaries(st.sampled_from([*CLAIM_KEYS, "other"]), anything))
def test_any_object_gives_claims_and_nothing_else(said: dict[str, object]) -> None:
    assert only_claims(parse_claims(json.dumps(said)))


@given(st.floats(min_value=1e-300, max_value=1e11, exclude_min=True))
def test_an_honest_number_is_kept(value: float) -> None:
    assert parse_claims(f"warming up\n{json.dumps({'speedup': value})}\n") == {"speedup": value}


def test_numbers_that_are_none_are_dropped() -> None:
    for untrusted in ("true", "0", "-1", "1e12", "null", '"2"', "[2]", '{"a": 2}', "-0.0"):
        assert parse_claims(f'{{"speedup": {untrusted}, "baseline_latency_us": 3}}') == {"baseline_latency_us": 3.0}


def test_the_last_object_counts() -> None:
    assert parse_claims('{"speedup": 2}\n{"speedup": 3}\n{broken}\n[4]') == {"speedup": 3.0}
    assert parse_claims("nothing here") == {}
