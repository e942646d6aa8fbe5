"""Meta's Llama 3 models."""

from functools import partial

from forge.recommend.models.shape import ModelShape

_llama_3 = partial(ModelShape, kv_heads=8, vocabulary=128256, context_tokens=131072)

LLAMA = (
    _llama_3(
        name="llama3.2-1b",
        title="Llama 3.2 1B",
        repository="meta-llama/Llama-3.2-1B-Instruct",
        published_parameters=1.24e9,
        layers=16,
        hidden=2048,
        heads=32,
        head_dim=64,
        intermediate=8192,
        tied=True,
    ),
    _llama_3(
        name="llama3.2-3b",
        title="Llama 3.2 3B",
        repository="meta-llama/Llama-3.2-3B-Instruct",
        published_parameters=3.21e9,
        layers=28,
        hidden=3072,
        heads=24,
        head_dim=128,
        intermediate=8192,
        tied=True,
    ),
    _llama_3(
        name="llama3.1-8b",
        title="Llama 3.1 8B",
        repository="meta-llama/Llama-3.1-8B-Instruct",
        published_parameters=8.03e9,
        layers=32,
        hidden=4096,
        heads=32,
        head_dim=128,
        intermediate=14336,
    ),
    _llama_3(
        name="llama3.1-70b",
        title="Llama 3.1 70B",
        repository="meta-llama/Llama-3.1-70B-Instruct",
        published_parameters=70.6e9,
        layers=80,
        hidden=8192,
        heads=64,
        head_dim=128,
        intermediate=28672,
    ),
    _llama_3(
        name="llama3.3-70b",
        title="Llama 3.3 70B",
        repository="meta-llama/Llama-3.3-70B-Instruct",
        published_parameters=70.6e9,
        layers=80,
        hidden=8192,
        heads=64,
        head_dim=128,
        intermediate=28672,
    ),
    _llama_3(
        name="llama3.1-405b",
        title="Llama 3.1 405B",
        repository="meta-llama/Llama-3.1-405B-Instruct",
        published_parameters=405.9e9,
        layers=126,
        hidden=16384,
        heads=128,
        head_dim=128,
        intermediate=53248,
    ),
)
