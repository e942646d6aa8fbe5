"""How fast a plan could be at best: flops, bytes and messages over what the vendor publishes.

An idealised model: kernels reach the published rates, nothing waits in a queue, the scheduler costs nothing. A real
server is slower. So a plan that misses a limit here misses it in practice. A plan that meets the limit here may still
miss it.

Roofline: Williams, Waterman and Patterson, CACM 52(4), 2009. Counting a transformer's flops and bytes: Pope et al.,
"Efficiently Scaling Transformer Inference", arXiv:2211.05102, sections 2 and 3.
"""

from typing import Literal, NamedTuple

from forge.platforms import Processor
from forge.recommend.memory import cache_bytes, kv_parts
from forge.recommend.models import ModelShape
from forge.recommend.quantization import Storage
from forge.recommend.request import Traffic

Bound = Literal["compute", "memory", "communication"]

REDUCE_BASE_S = 6.6e-6
"""Seconds that an all-reduce takes before it moves anything: base latency of a ring, LL, in NCCL 2.28,
src/graph/tuning.cc."""
REDUCE_STEP_S = {"linked": 0.6e-6, "pcie": 1.0e-6}
"""Seconds that each of its steps takes in addition: hardware latency of a ring, LL, over NVLink and over PCIe, in the
same table."""
LINKED_FROM_GB_S = 200.0
"""Rate in GB/s above which GPUs have links of their own: PCIe 5.0 x16 moves 128 GB/s."""


class Hardware(NamedTuple):
    """A number of devices as the model sees them: rates of all together, links of one."""

    devices: int
    linear_flop_s: float
    attention_flop_s: float
    bandwidth_byte_s: float
    link_byte_s: float
    """One direction of one device's links."""
    step_s: float


class Phase(NamedTuple):
    """One pass through the model: what it costs, at best."""

    compute_s: float
    memory_s: float
    communication_s: float

    @property
    def seconds(self) -> float:
        """Seconds of the slower of arithmetic and memory, plus those of messages, which overlap with neither."""
        return max(self.compute_s, self.memory_s) + self.communication_s

    @property
    def bound(self) -> Bound:
        """The part that takes longest."""
        costs: dict[Bound, float] = {
            "compute": self.compute_s,
            "memory": self.memory_s,
            "communication": self.communication_s,
        }
        return max(costs, key=lambda name: costs[name])


def hardware_of(processor: Processor, storage: Storage, *, gpus: int) -> Hardware | str:
    """Return the processor's published figures for `gpus` of them, or why there is no estimate."""
    linear = processor.peak_tflop_s.get(storage.multiplies_in)
    attention = processor.peak_tflop_s.get("fp16" if storage.multiplies_in == "fp16" else "bf16")
    if linear is None:
        return f"its vendor publishes no {storage.multiplies_in} rate"
    if attention is None or processor.peak_bandwidth_gb_s is None:
        return "its vendor publishes no 16-bit rate or no bandwidth"
    devices, links = gpus * processor.devices, processor.interconnect_gb_s
    if devices > 1 and links is None:
        return "its vendor connects no two of them"
    return Hardware(
        devices=devices,
        linear_flop_s=gpus * linear * 1e12,
        attention_flop_s=gpus * attention * 1e12,
        bandwidth_byte_s=gpus * processor.peak_bandwidth_gb_s * 1e9,
        link_byte_s=(links or 0.0) * 1e9 / 2 / processor.devices,
        step_s=REDUCE_STEP_S["linked" if (links or 0.0) > LINKED_FROM_GB_S else "pcie"],
    )


def prefill(
    model: ModelShape, storage: Storage, hardware: Hardware, *, prompt_tokens: int, prompts: int = 1
) -> Phase:
    """Read `prompts` prompts of `prompt_tokens` each: `prefill_roofline`.

    - linear layers: 2 flops per active weight and token; the output layer for the last token of each prompt only
    - attention: 4 x heads x head_dim flops per pair of tokens, half of the pairs where each looks back only
    - memory: every weight that is used, once, and the cache written
    """
    tokens = prompt_tokens * prompts
    linear = 2 * tokens * _active(model) + 2 * prompts * _output(model)
    pairs = model.attended(prompt_tokens) * prompt_tokens * (0.5 if model.has_output_layer else 1.0)
    attention = 4 * model.heads * _attended_dim(model) * pairs * prompts
    moved = _weight_bytes(model, storage, tokens) + prompts * _cache(model, hardware, prompt_tokens)
    return Phase(
        compute_s=linear / hardware.linear_flop_s + attention / hardware.attention_flop_s,
        memory_s=moved / hardware.bandwidth_byte_s,
        communication_s=_reduces(model, hardware, tokens),
    )


def decode(model: ModelShape, storage: Storage, hardware: Hardware, *, context_tokens: float, batch: int) -> Phase:
    """Make one more token for each of `batch` requests: `decode_roofline`.

    - linear layers: 2 flops per active weight and token, output layer included
    - attention: 4 x heads x head_dim flops per token of context (latent attention: over the compressed vector)
    - memory: every weight that is used, once, and each request's cache, read
    """
    linear = 2 * batch * (_active(model) + _output(model))
    attention = 4 * model.heads * _decoded_dim(model) * model.attended(context_tokens) * batch
    moved = _weight_bytes(model, storage, batch) + batch * _cache(model, hardware, context_tokens)
    return Phase(
        compute_s=linear / hardware.linear_flop_s + attention / hardware.attention_flop_s,
        memory_s=moved / hardware.bandwidth_byte_s,
        communication_s=_reduces(model, hardware, batch),
    )


def throughput_tok_s(first: Phase, step: Phase | None, *, traffic: Traffic, batch: int) -> float:
    """Return the tokens a second in the steady state: `interleaved_throughput`.

    While `batch` requests run, each prompt is read once and each step makes a token for all: the tokens of one round
    over its time. Output tokens, or prompt tokens where nothing is generated.
    """
    if step is None:
        return batch * traffic.prompt_tokens / first.seconds
    return batch * traffic.output_tokens / (batch * first.seconds + traffic.output_tokens * step.seconds)


def experts_read(model: ModelShape, tokens: float) -> float:
    """Return the experts of a layer that `tokens` tokens use, if each token's choice is independent and even.

    E x (1 - (1 - k/E)^tokens): one expert stays unused with probability (1 - k/E) per token.
    """
    if model.experts is None:
        return 0.0
    count, chosen = model.experts.experts, model.experts.chosen
    return float(count * (1 - (1 - chosen / count) ** tokens))


def _active(model: ModelShape) -> float:
    """Return the weights of the layers that one token passes through."""
    return model.block_parameters(model.experts.chosen if model.experts else 0)


def _output(model: ModelShape) -> int:
    return model.embedding_parameters if model.has_output_layer else 0


def _weight_bytes(model: ModelShape, storage: Storage, tokens: float) -> float:
    return model.block_parameters(experts_read(model, tokens)) * storage.stored_bits / 8 + 2 * _output(model)


def _cache(model: ModelShape, hardware: Hardware, context_tokens: float) -> float:
    """Return the bytes over all devices. A copy that two devices keep counts twice."""
    return cache_bytes(model, context_tokens) * hardware.devices / kv_parts(model, hardware.devices)


def _attended_dim(model: ModelShape) -> float:
    """Return the mean of what a query is multiplied with and what is summed up, while the cache is expanded."""
    if model.latent is None:
        return model.head_dim
    return (model.latent.plain_dim + model.latent.rotary_dim + model.latent.value_dim) / 2


def _decoded_dim(model: ModelShape) -> float:
    """Return the same size while decoding. With latent attention, queries meet the compressed vector itself."""
    if model.latent is None:
        return model.head_dim
    return (2 * model.latent.key_value_rank + model.latent.rotary_dim) / 2


def _reduces(model: ModelShape, hardware: Hardware, tokens: float) -> float:
    """Return the time of two all-reduces a layer, each of tokens x hidden x 2 bytes: `ring_all_reduce`.

    2(n - 1) steps, and 2(n - 1)/n of the bytes through each device's links (Patarasu and Yuan, JPDC 69(2), 2009).
    """
    count = hardware.devices
    if count == 1:
        return 0.0
    steps = 2 * (count - 1)
    sent = steps / count * tokens * model.hidden * 2
    return 2 * model.layers * (REDUCE_BASE_S + steps * hardware.step_s + sent / hardware.link_byte_s)
