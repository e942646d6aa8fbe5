"""The analytic model: against numbers worked out by hand, and laws that hold for every model and GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.platforms import PROCESSORS
from forge.recommend.models import MODELS
from forge.recommend.quantization import STORAGE
from forge.recommend.request import Traffic
from forge.recommend.roofline import (
    REDUCE_BASE_S,
    Hardware,
    decode,
    experts_read,
    hardware_of,
    prefill,
    throughput_tok_s,
)

models = st.sampled_from(list(MODELS.values()))
generating = st.sampled_from([one for one in MODELS.values() if one.has_output_layer])
tokens = st.integers(1, 20_000)
LLAMA = MODELS["llama3.1-8b"]
BF16 = STORAGE["bf16"]
BLOCKS = 32 * (4096 * 128 * (2 * 32 + 2 * 8) + 3 * 4096 * 14336)
OUTPUT = 128256 * 4096


def hardware(gpus: int = 1, quantization: str = "bf16", gpu: str = "h200") -> Hardware:
    found = hardware_of(PROCESSORS[gpu], STORAGE[quantization], gpus=gpus)
    assert isinstance(found, Hardware)
    return found


def test_one_token_on_an_h200_is_as_slow_as_reading_the_weights_once() -> None:
    step = decode(LLAMA, BF16, hardware(), context_tokens=1000, batch=1)
    assert step.memory_s == pytest.approx((2 * (BLOCKS + OUTPUT) + 1000 * 131072) / 4.8e12)
    assert step.compute_s == pytest.approx((2 * (BLOCKS + OUTPUT) + 4 * 32 * 128 * 32 * 1000) / 989.4e12)
    assert (step.communication_s, step.bound, step.seconds) == (0.0, "memory", step.memory_s)


def test_a_long_prompt_on_an_h200_is_as_slow_as_its_arithmetic() -> None:
    first = prefill(LLAMA, BF16, hardware(), prompt_tokens=4096)
    linear = 2 * 4096 * BLOCKS + 2 * OUTPUT
    attention = 4 * 32 * 128 * 32 * 4096 * 4096 / 2
    assert first.compute_s == pytest.approx((linear + attention) / 989.4e12)
    assert (first.bound, first.seconds) == ("compute", first.compute_s)


def test_splitting_over_gpus_costs_two_all_reduces_a_layer() -> None:
    step = decode(LLAMA, BF16, hardware(4), context_tokens=1000, batch=2)
    moved = 2 * 3 / 4 * 2 * 4096 * 2 / 450e9
    assert step.communication_s == pytest.approx(2 * 32 * (REDUCE_BASE_S + 6 * 0.6e-6 + moved))
    assert step.memory_s == pytest.approx(decode(LLAMA, BF16, hardware(), context_tokens=1000, batch=2).memory_s / 4)


def test_what_a_gpu_has_no_units_for_has_no_estimate() -> None:
    assert hardware_of(PROCESSORS["a100"], STORAGE["fp8"], gpus=1) == "its vendor publishes no fp8 rate"
    assert "no bf16 rate" in str(hardware_of(PROCESSORS["m4"], STORAGE["bf16"], gpus=1))


def test_a_gpu_of_two_devices_communicates_even_alone() -> None:
    alone = hardware(gpu="mi250x")
    assert alone.devices == 2
    assert decode(LLAMA, BF16, alone, context_tokens=10, batch=1).communication_s > 0


@given(models, tokens)
def test_between_the_chosen_and_all_experts_are_read(model, count) -> None:
    read = experts_read(model, count)
    if model.experts is None:
        assert read == 0
    else:
        assert model.experts.chosen * (1 - 1e-9) <= read <= model.experts.experts
        assert read <= count * model.experts.chosen * (1 + 1e-9)


@given(generating, st.integers(1, 500), st.integers(1, 500), tokens)
def test_more_requests_together_make_no_step_faster_and_no_token_dearer(model, few, more, context) -> None:
    one = decode(model, BF16, hardware(), context_tokens=context, batch=few)
    two = decode(model, BF16, hardware(), context_tokens=context, batch=few + more)
    assert two.seconds >= one.seconds
    assert two.seconds / (few + more) <= one.seconds / few * (1 + 1e-9)


@given(models, tokens, tokens)
def test_a_longer_prompt_is_never_read_faster(model, short, more) -> None:
    first = prefill(model, BF16, hardware(), prompt_tokens=short)
    assert prefill(model, BF16, hardware(), prompt_tokens=short + more).seconds >= first.seconds


@given(generating, st.integers(1, 300), st.integers(1, 4000), st.integers(1, 4000))
def test_throughput_lies_below_what_steps_alone_would_give(model, batch, prompt, output) -> None:
    traffic = Traffic(prompt_tokens=prompt, output_tokens=output, concurrency=batch)
    first = prefill(model, BF16, hardware(), prompt_tokens=prompt)
    step = decode(model, BF16, hardware(), context_tokens=prompt, batch=batch)
    assert 0 < throughput_tok_s(first, step, traffic=traffic, batch=batch) < batch / step.seconds
