"""What fills a GPU: against numbers worked out by hand, and laws that hold for every model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.platforms import PROCESSORS
from forge.recommend.memory import cache_bytes, memory_of
from forge.recommend.models import MODELS
from forge.recommend.quantization import STORAGE

models = st.sampled_from(list(MODELS.values()))
H200 = PROCESSORS["h200"]


@pytest.mark.parametrize(
    ("name", "bytes_per_token"),
    [
        ("llama3.1-8b", 2 * 32 * 8 * 128 * 2),
        ("llama3.1-70b", 2 * 80 * 8 * 128 * 2),
        ("qwen2.5-7b", 2 * 28 * 4 * 128 * 2),
        ("deepseek-v3", 61 * (512 + 64) * 2),
    ],
)
def test_a_token_of_context_keeps_what_its_configuration_says(name, bytes_per_token) -> None:
    assert cache_bytes(MODELS[name], 1) == bytes_per_token
    assert cache_bytes(MODELS[name], 1000) == 1000 * bytes_per_token


def test_layers_with_local_attention_keep_no_more_than_their_window() -> None:
    model = MODELS["gemma3-27b"]
    each = 2 * 16 * 128 * 2
    assert cache_bytes(model, 512) == 62 * 512 * each
    assert cache_bytes(model, 10_000) == (52 * 1024 + 10 * 10_000) * each


def test_an_8b_model_in_16_bits_takes_16_gigabytes() -> None:
    memory = memory_of(MODELS["llama3.1-8b"], STORAGE["bf16"], H200, devices=1, context_tokens=2048)
    assert memory.weights == pytest.approx(2 * 8.03e9, rel=0.001)
    left = 0.9 * 141e9 - memory.weights - memory.activations
    assert memory.fits == int(left // (2048 * 131072))


def test_a_latent_cache_is_whole_on_each_device_and_heads_are_split_down_to_one() -> None:
    latent, grouped = MODELS["deepseek-v3"], MODELS["llama3.1-70b"]
    for model, parts in ((latent, {1: 1, 8: 1}), (grouped, {1: 1, 8: 8, 16: 8})):
        for devices, expected in parts.items():
            memory = memory_of(model, STORAGE["fp8"], H200, devices=devices, context_tokens=100)
            assert memory.kv_per_request == cache_bytes(model, 100) / expected


@given(models, st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_context_never_lets_more_requests_fit(model, short, more) -> None:
    near = memory_of(model, STORAGE["bf16"], H200, devices=8, context_tokens=short)
    far = memory_of(model, STORAGE["bf16"], H200, devices=8, context_tokens=short + more)
    assert far.fits <= near.fits


@given(models, st.integers(1, 100_000), st.sampled_from([1, 2, 4, 8]))
def test_what_fits_does_fit_and_one_more_does_not(model, context, devices) -> None:
    memory = memory_of(model, STORAGE["fp8"], H200, devices=devices, context_tokens=context)
    if memory.fits:
        assert memory.filled_gb(memory.fits) * 1e9 <= memory.usable * (1 + 1e-9)
        assert memory.filled_gb(memory.fits + 1) * 1e9 > memory.usable * (1 - 1e-9)


@given(models)
def test_fewer_bits_take_less_memory(model) -> None:
    sizes = [
        memory_of(model, STORAGE[name], H200, devices=1, context_tokens=100).weights
        for name in ("int4", "fp8", "bf16")
    ]
    assert sizes == sorted(set(sizes))
