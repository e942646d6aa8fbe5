"""How much of a GPU's memory a plan fills, and how many requests fit at once. All sizes are bytes of one GPU."""

from typing import NamedTuple

from forge.platforms import Processor
from forge.recommend.models import ModelShape
from forge.recommend.quantization import Storage

USABLE_SHARE = 0.9
"""Share of a GPU's memory that a server takes: vLLM's default `gpu_memory_utilization`."""
PREFILL_CHUNK_TOKENS = 8192
"""Number of prompt tokens in flight at once: vLLM's `max_num_batched_tokens` for a server on large GPUs."""
KV_BYTES = 2
"""Bytes of one number in the cache: 16 bits, whatever the type of the weights."""


class MemoryShares(NamedTuple):
    """What fills one GPU, and what is left for requests."""

    usable: float
    weights: float
    activations: float
    kv_per_request: float
    """Bytes of keys and values of one request, at the asked context."""

    @property
    def fits(self) -> int:
        """Number of requests whose caches fit next to the weights; 0 if not even those do."""
        left = self.usable - self.weights - self.activations
        return max(int(left // self.kv_per_request), 0) if left > 0 else 0

    def filled_gb(self, requests: int) -> float:
        """Return the decimal gigabytes that this number of requests fills."""
        return (self.weights + self.activations + requests * self.kv_per_request) / 1e9


def memory_of(
    model: ModelShape, storage: Storage, processor: Processor, *, devices: int, context_tokens: int
) -> MemoryShares:
    """Split a model over `devices`, each an equal part of the layers' weights; `processor.memory_gb` must be known.

    - weights: layers x stored bits / 8 / devices, embedding and output layer x 2 bytes / devices
    - cache of a request: numbers per token and layer x layers that keep it x context x 2 bytes. Heads are split, at
      most down to one a device; a latent cache (MLA) isn't split, each device has all of it
    - activations: a chunk of prompt, 2 bytes x (2 x hidden + the widest of a device's inner layers)
    """
    assert processor.memory_gb is not None
    copies = 1 if model.tied or not model.has_output_layer else 2
    experts = model.experts.experts if model.experts else 0
    blocks = model.block_parameters(experts) * storage.stored_bits / 8
    embeddings = copies * model.embedding_parameters * 2
    inner = model.experts.intermediate * model.experts.chosen if model.experts else model.intermediate
    widest = max(2 * inner, (model.heads + 2 * model.kv_heads) * model.head_dim) / devices
    chunk = min(PREFILL_CHUNK_TOKENS, context_tokens)
    return MemoryShares(
        usable=USABLE_SHARE * processor.memory_gb * 1e9 / processor.devices,
        weights=(blocks + embeddings) / devices,
        activations=chunk * 2 * (2 * model.hidden + widest),
        kv_per_request=cache_bytes(model, context_tokens) / kv_parts(model, devices),
    )


def cache_bytes(model: ModelShape, context_tokens: float) -> float:
    """Return the bytes of one request's keys and values at that context, over all devices, if none is kept twice."""
    return model.kv_values_per_token * model.attended(context_tokens) * KV_BYTES


def kv_parts(model: ModelShape, devices: int) -> int:
    """Return into how many different parts a cache is split."""
    return 1 if model.latent is not None else min(devices, model.kv_heads)
