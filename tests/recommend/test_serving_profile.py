"""Measured profiles: what is a number is taken, what isn't is refused, and they hold for what was measured only."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import UsageError
from forge.recommend import Constraints, Recommender, Request, parse_serving_profiles

PROFILE = {
    "model": "llama3.1-8b",
    "gpu": "H200",
    "backend": "sglang",
    "quantization": "fp8",
    "prompt_tokens": 1024,
    "output_tokens": 256,
    "concurrency": 16,
    "ttft_ms_p50": 30.0,
    "ttft_ms_p95": 45.0,
    "tpot_ms_p50": 4.0,
    "throughput_tok_s": 3500.0,
    "memory_gb": 120.0,
    "measured_by": "the load test of 3 May",
}
ASKED = Request(model="llama3.1-8b", constraints=Constraints(gpus=("h200",), max_gpus=1, quantizations=("fp8",)))
NUMBERS = [name for name, value in PROFILE.items() if isinstance(value, float | int)]


def read(*changes, **more):
    entries = [{**PROFILE, **one} for one in changes] or [{**PROFILE, **more}]
    entries = [{name: value for name, value in one.items() if value is not ...} for one in entries]
    return parse_serving_profiles(json.dumps(entries).encode(), source="profiles.json")


def test_a_profile_replaces_the_estimate_of_its_deployment_and_is_marked_measured() -> None:
    answer = Recommender(optimization_passes=(), profiles=read()).recommend(ASKED)
    (measured,) = [plan for plan in answer.plans if plan.backend == "sglang"]
    assert measured.benchmark_source == "measured"
    assert (measured.ttft_ms.value, measured.ttft_ms.basis) == (45.0, "measured")
    assert measured.ttft_ms.how == "p95, measured by the load test of 3 May"
    assert measured.tpot_ms.how.startswith("median, ")
    assert (measured.throughput_tok_s.value, measured.memory_gb.basis) == (3500.0, "measured")
    assert (measured.latency_ms.value, measured.latency_ms.basis) == (45.0 + 255 * 4.0, "estimated")
    assert "measured by the load test of 3 May" in measured.explanation
    others = [plan for plan in answer.plans if plan.backend != "sglang"]
    assert {plan.benchmark_source for plan in others} == {"estimated"}
    assert not any("sglang" in plan.other_backends for plan in others)


def test_a_constraint_is_held_against_the_measurement() -> None:
    limit = ASKED.constraints.model_copy(update={"max_ttft_ms": 40.0, "backends": ("sglang",)})
    request = ASKED.model_copy(update={"constraints": limit})
    assert Recommender(optimization_passes=()).recommend(request).recommended is not None
    answer = Recommender(optimization_passes=(), profiles=read()).recommend(request)
    assert answer.recommended is None
    assert "time to the first token 45.0 ms" in answer.summary


def test_a_profile_of_other_traffic_is_not_used_and_that_is_said() -> None:
    answer = Recommender(optimization_passes=(), profiles=read(concurrency=8)).recommend(ASKED)
    assert {plan.benchmark_source for plan in answer.plans} == {"estimated"}
    assert "1 of the profiles of llama3.1-8b were measured under other traffic" in answer.notes[0]


def test_a_gpu_without_published_rates_has_a_plan_where_it_was_measured() -> None:
    profiles = read(gpu="m4max", backend="llama.cpp", quantization="int4", memory_gb=...)
    request = Request(model="llama3.1-8b", constraints=Constraints(gpus=("m4max",)))
    plan = Recommender(optimization_passes=(), profiles=profiles).recommend(request).recommended
    assert (plan.gpu, plan.benchmark_source, plan.memory_gb.basis) == ("m4max", "measured", "estimated")


@given(st.sampled_from(NUMBERS), st.floats(max_value=-1e-9, allow_infinity=False) | st.integers(max_value=-1))
def test_a_negative_number_is_refused_by_its_name(name, value) -> None:
    with pytest.raises(UsageError, match=name):
        read(**{name: value})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ttft_ms_p95": 10.0}, "below the median"),
        ({"tpot_ms_p50": ...}, "tpot_ms_p50 is expected"),
        ({"throughput_tok_s": 0}, "throughput_tok_s"),
        ({"throughput_tok_s": "fast"}, "throughput_tok_s"),
        ({"measured_by": ""}, "measured_by"),
        ({"measured_by": ...}, "measured_by"),
        ({"model": "gpt-9"}, "unknown model 'gpt-9'"),
        ({"gpu": "h2000"}, "unknown gpu 'h2000'"),
        ({"backend": "magic"}, "backend 'magic'"),
        ({"quantization": "int3"}, "quantization 'int3'"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_no_profile_says_is_refused_with_its_place(changes, said) -> None:
    with pytest.raises(UsageError, match=r"profiles\.json\[0\]") as refused:
        read(**changes)
    assert said in refused.value.message


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'gpu' stands twice"):
        parse_serving_profiles(b'[{"gpu": "h200", "gpu": "h100"}]', source="profiles.json")


@pytest.mark.parametrize("text", ["a\nnote: b", "\x1b[2J", "\u202e"])
def test_who_measured_is_one_line_that_can_be_printed(text) -> None:
    for name in ("measured_by", "notes"):
        with pytest.raises(UsageError, match="one line"):
            read({name: text})


@pytest.mark.parametrize("text", [b"", b"{", b"{}", b"[]", b"[1]", b"null", b"\xff", b"[NaN]", b"[" * 10_000])
def test_what_is_no_list_of_profiles_is_refused(text) -> None:
    with pytest.raises(UsageError, match=r"profiles\.json"):
        parse_serving_profiles(text, source="profiles.json")


def test_two_measurements_of_one_deployment_are_refused() -> None:
    with pytest.raises(UsageError, match="two profiles"):
        Recommender(profiles=read({}, {"ttft_ms_p50": 31.0}))
