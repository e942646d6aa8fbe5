"""Which operations a plan runs, and at which shapes. The registry is asked for kernels for them.

Names and axes are those of the catalogue of operations; a test checks this. A real server may fuse operations or
use a library, so a slot is a question and not a promise.
"""

from collections.abc import Iterator, Mapping

from forge.recommend.models import ModelShape
from forge.recommend.plan import Plan

Slot = tuple[str, Mapping[str, int]]


def slots_of(model: ModelShape, plan: Plan) -> tuple[Slot, ...]:
    """Return each (operation, shape): first of one prompt being read, then of all running requests being answered."""
    devices, prompt = plan.tensor_parallel, plan.traffic.prompt_tokens
    found = [*_layer(model, devices, prompt), *_attention(model, devices, prompt, prompt, "attention_prefill")]
    if plan.traffic.output_tokens:
        running = plan.running_requests
        context = prompt + plan.traffic.output_tokens // 2
        found += _layer(model, devices, running)
        found += _attention(model, devices, running, context, "attention_decode")
        found += [("softmax", {"batch": running, "hidden_size": model.vocabulary})]
    if plan.quantization in {"bf16", "fp16"}:
        found += _matmuls(model, devices, prompt)
        if plan.traffic.output_tokens:
            found += _matmuls(model, devices, plan.running_requests)
    return tuple(found)


def _layer(model: ModelShape, devices: int, tokens: int) -> Iterator[Slot]:
    if model.norm == "rms":
        yield "rmsnorm", {"batch": tokens, "hidden_size": model.hidden}
        yield "fused_add_rmsnorm", {"batch": tokens, "hidden_size": model.hidden}
    else:
        yield "layernorm", {"batch": tokens, "hidden_size": model.hidden}
    if model.rotary and model.latent is None:
        yield "rope", {"tokens": tokens, "heads": model.heads // devices, "half_dim": model.head_dim // 2}
    if model.gated and model.experts is None:
        op = "silu_mul" if model.activation == "silu" else "geglu_tanh"  # Gemma's gate has the tanh form
        yield op, {"batch": tokens, "hidden_size": model.intermediate // devices}
    if model.experts is not None:
        gate = "moe_fused_gate" if model.experts.sigmoid_gate else "topk_softmax"
        yield gate, {"tokens": tokens, "experts": model.experts.experts}


def _attention(model: ModelShape, devices: int, tokens: int, context: int, op: str) -> Iterator[Slot]:
    if model.latent is None and model.has_output_layer:
        heads = max(model.kv_heads // devices, 1)
        shape = {"kv_heads": heads, "group": model.heads // devices // heads, "head_dim": model.head_dim}
        yield op, {"tokens": tokens, "kv_len": context, **shape}


def _matmuls(model: ModelShape, devices: int, tokens: int) -> Iterator[Slot]:
    if model.latent is None:
        yield "matmul", {"m": tokens, "k": model.heads * model.head_dim // devices, "n": model.hidden}
    if model.experts is None:
        yield "matmul", {"m": tokens, "k": model.intermediate // devices, "n": model.hidden}
