"""Ranking: constraints before scores, nothing hidden, nothing invented, and no plan that changes another's place."""

from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from forge.errors import UnknownName, UsageError
from forge.recommend import MODELS, Constraints, Recommender, Request
from forge.recommend.request import Priority, parse_prices, parse_request

RECOMMENDER = Recommender(optimization_passes=())
GPUS = ("h200", "h100", "l40s", "l4", "a100", "mi300x", "rtx4090")
PRICES = {name: 1.0 + place for place, name in enumerate(GPUS)}
generating = st.sampled_from([one.name for one in MODELS.values() if one.purpose == "generate"])
limits = st.none() | st.floats(0.01, 1e5)


def asked(**changes):
    constraints = {"gpus": GPUS, **changes.pop("constraints", {})}
    return Request(**{"model": "llama3.1-8b", "constraints": Constraints(**constraints), **changes})


def deployment(plan):
    return plan.gpu, plan.gpus, plan.quantization, plan.backend


@settings(max_examples=25)
@given(generating, st.sampled_from(get_args(Priority)), limits, limits, limits, st.none() | st.integers(1, 500))
def test_a_recommended_plan_meets_every_constraint_and_a_missed_one_is_told(
    model, priority, ttft, tpot, throughput, concurrency
) -> None:
    limit = {
        "max_ttft_ms": ttft,
        "max_tpot_ms": tpot,
        "min_throughput_tok_s": throughput,
        "concurrency": concurrency,
    }
    answer = RECOMMENDER.recommend(asked(model=model, priority=priority, prices=PRICES, constraints=limit))
    for plan in answer.plans:
        assert ttft is None or (plan.ttft_ms.value <= ttft) == _met(plan, "ttft_ms")
        assert tpot is None or (plan.tpot_ms.value <= tpot) == _met(plan, "tpot_ms")
        assert throughput is None or (plan.throughput_tok_s.value >= throughput) == _met(plan, "throughput_tok_s")
        assert concurrency is None or (plan.running_requests >= concurrency) == _met(plan, "concurrency")
        assert plan.memory_gb.value <= plan.memory_available_gb
        assert ("Misses" in plan.explanation) != plan.meets_constraints
    if answer.recommended is None:
        assert not any(plan.meets_constraints or plan.is_recommended for plan in answer.plans)
        assert answer.summary.startswith("No plan")
    else:
        assert answer.recommended.is_recommended
        assert all(plan.meets_constraints for plan in answer.plans)
    assert [plan.rank for plan in answer.plans] == list(range(1, len(answer.plans) + 1))


def _met(plan, name: str) -> bool:
    (check,) = [one for one in plan.checks if one.name == name]
    return check.met


@settings(max_examples=15)
@given(generating, st.sampled_from(get_args(Priority)), st.data())
def test_leaving_out_a_gpu_never_turns_two_other_plans_around(model, priority, data) -> None:
    answer = RECOMMENDER.recommend(asked(model=model, priority=priority, prices=PRICES))
    assume(len({plan.gpu for plan in answer.plans}) > 1)
    gone = data.draw(st.sampled_from(sorted({plan.gpu for plan in answer.plans})))
    left = tuple(name for name in GPUS if name != gone)
    fewer = RECOMMENDER.recommend(asked(model=model, priority=priority, prices=PRICES, constraints={"gpus": left}))
    stay = [deployment(plan) for plan in answer.plans if plan.gpu != gone]
    assert [deployment(plan) for plan in fewer.plans][: len(stay)] == stay


def test_the_same_question_has_the_same_answer() -> None:
    assert RECOMMENDER.recommend(asked()) == RECOMMENDER.recommend(asked())


def test_every_figure_says_what_it_rests_on() -> None:
    for plan in RECOMMENDER.recommend(asked()).plans:
        assert plan.benchmark_source == "estimated"
        for figure in (plan.ttft_ms, plan.tpot_ms, plan.latency_ms, plan.throughput_tok_s, plan.memory_gb):
            assert (figure.basis, bool(figure.how)) == ("estimated", True)
        assert "estimated from published rates" in plan.explanation


def test_that_fewer_bits_may_cost_accuracy_is_said_of_all_but_the_published_weights() -> None:
    said = "costs in accuracy wasn't measured"
    for model, quantization, cut in (
        ("phi-4", "int4", True),
        ("phi-4", "bf16", False),
        ("deepseek-v3", "fp8", False),
    ):
        limits = {"gpus": ("mi355x",), "quantizations": (quantization,)}
        plan = RECOMMENDER.recommend(asked(model=model, constraints=limits)).recommended
        assert (said in plan.explanation) == cut


def test_without_prices_there_is_no_cost_and_a_cost_priority_is_refused() -> None:
    answer = RECOMMENDER.recommend(asked())
    for plan in answer.plans:
        assert plan.price_per_hour is plan.price_per_million_tokens is plan.scores.cost is None
        assert plan.is_over_provisioned is None
    assert [note for note in answer.notes if "price" in note] == ["no prices were given: cost isn't weighed"]
    for changes in ({"priority": "cost"}, {"constraints": {"max_price_per_hour": 3.0}}):
        with pytest.raises(UsageError, match="--price"):
            RECOMMENDER.recommend(asked(**changes))


def test_a_price_of_one_gpu_is_multiplied_by_how_many_and_spread_over_the_tokens() -> None:
    answer = RECOMMENDER.recommend(asked(prices={"H200": 3.5}, constraints={"gpus": ("h200",)}))
    for plan in answer.plans:
        assert plan.price_per_hour == 3.5 * plan.gpus
        assert plan.price_per_month == plan.price_per_hour * 730
        per_hour = plan.throughput_tok_s.value * 3600
        assert plan.price_per_million_tokens == pytest.approx(plan.price_per_hour / per_hour * 1e6)


def test_by_cost_a_gpu_without_a_price_is_left_out_and_said_to_be() -> None:
    answer = RECOMMENDER.recommend(asked(priority="cost", prices={"l4": 0.8}))
    assert {plan.gpu for plan in answer.plans} == {"l4"}
    assert {one.gpu for one in answer.left_out if "no price" in one.reason} == set(GPUS) - {"l4"}


def test_a_plan_much_dearer_than_one_that_also_meets_everything_is_over_provisioned() -> None:
    dear = {"h200": 8.0, "l4": 0.1}
    answer = RECOMMENDER.recommend(asked(priority="latency", prices=dear, constraints={"gpus": ("h200", "l4")}))
    assert answer.recommended.gpu == "h200"
    assert answer.recommended.is_over_provisioned is True


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "llama3.1-405b", "constraints": {"gpus": ("l4",), "max_gpus": 1}}, "GB are usable"),
        ({"constraints": {"gpus": ("h200",), "min_context_tokens": 200_000}}, "made for 131072"),
        ({"constraints": {"gpus": ("a100",), "quantizations": ("fp8",)}}, "no fp8 rate"),
        ({"constraints": {"gpus": ("mi300x",), "backends": ("tensorrt-llm",)}}, "no backend runs"),
        ({"constraints": {"gpus": ("m4max",)}}, "no bf16 rate"),
        ({"constraints": {"gpus": ("cpu",)}}, "isn't tabulated"),
    ],
)
def test_where_nothing_fits_the_reason_is_given(changes, reason) -> None:
    answer = RECOMMENDER.recommend(asked(**changes))
    assert (answer.recommended, answer.alternatives) == (None, ())
    assert reason in answer.left_out[0].reason
    assert reason in answer.summary


def test_requests_that_do_not_fit_together_wait_and_that_is_said() -> None:
    limit = {"gpus": ("rtx4090",), "max_gpus": 1, "quantizations": ("bf16",), "min_context_tokens": 16_000}
    plan = RECOMMENDER.recommend(asked(constraints=limit)).recommended
    assert plan.running_requests < plan.traffic.concurrency
    assert f"Only {plan.running_requests} of {plan.traffic.concurrency} requests fit" in plan.explanation
    refused = RECOMMENDER.recommend(asked(constraints={**limit, "concurrency": 16}))
    assert refused.recommended is None
    assert "requests in memory together" in refused.summary


def test_layers_are_split_only_where_the_heads_divide() -> None:
    answer = RECOMMENDER.recommend(asked(model="qwen2.5-7b", priority="latency"))
    assert {plan.gpus for plan in answer.plans} <= {1, 2, 4}


def test_an_embedding_model_makes_no_tokens_and_chat_needs_one_that_does() -> None:
    plan = RECOMMENDER.recommend(asked(model="bge-large-en", workload="embedding")).recommended
    assert (plan.tpot_ms, plan.traffic.output_tokens) == (None, 0)
    assert plan.latency_ms.value == plan.ttft_ms.value
    for model, workload in (("bge-large-en", "chat"), ("llama3.1-8b", "embedding")):
        with pytest.raises(UsageError, match=workload):
            RECOMMENDER.recommend(asked(model=model, workload=workload))


def test_a_preference_decides_but_excludes_nothing() -> None:
    best = RECOMMENDER.recommend(asked(constraints={"gpus": ("h200", "l4")}, prefer_gpu="l4")).recommended
    assert best.gpu == "h200"
    preferred = RECOMMENDER.recommend(asked(prefer_backend="sglang")).recommended
    assert preferred.backend == "sglang"
    assert "vllm" in preferred.other_backends


@pytest.mark.parametrize("name", ["h100x", "", "h20"])
def test_an_unknown_gpu_is_refused_wherever_it_is_named(name) -> None:
    for request in (
        {"constraints": Constraints(gpus=(name or " ",))},
        {"prices": {name or " ": 1.0}},
        {"prefer_gpu": name or " "},
    ):
        with pytest.raises(UnknownName, match="unknown gpu"):
            RECOMMENDER.recommend(Request(model="llama3.1-8b", **request))


@given(st.floats(max_value=0) | st.just(float("nan")) | st.just(float("inf")))
def test_a_limit_that_is_no_positive_number_is_refused(value) -> None:
    with pytest.raises(ValidationError):
        Constraints(max_ttft_ms=value)
    with pytest.raises(UsageError, match=r"constraints\.max_ttft_ms"):
        parse_request({"model": "llama3.1-8b", "constraints": {"max_ttft_ms": value}})


@pytest.mark.parametrize("text", ["h200", "=3", "h200=", "h200=0", "h200=-1", "h200=nan", "h200=inf", "h200=1e9"])
def test_a_price_that_is_none_is_refused(text) -> None:
    with pytest.raises(UsageError, match="price"):
        parse_prices([text])


def test_a_price_given_twice_is_refused_even_under_another_name() -> None:
    with pytest.raises(UsageError, match="twice"):
        parse_prices(["h200=1", "h200=2"])
    with pytest.raises(UsageError, match="twice"):
        RECOMMENDER.recommend(asked(prices={"h100": 1.0, "H100 SXM": 2.0}))
