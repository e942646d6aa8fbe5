"""The default pass: attaches verified kernels from the published registry, for exactly the plan's GPU.

A kernel's evidence is about one operation in a microbenchmark. The pass says that the kernel exists, not that it is
used. Nothing about the model's speed follows from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from forge.lookup import Health, Policy, Registry, Result
from forge.recommend.models import ModelShape, find_model
from forge.recommend.passes import Annotation
from forge.recommend.plan import KernelOptimizationMetadata, Plan
from forge.recommend.request import Request

INSIDE = Policy(shape="nearest", gpu="exact")
"""Policy that allows shapes inside a kernel's verified domain, and the plan's own GPU only."""

Slot = tuple[str, Mapping[str, int]]


def slots_of(model: ModelShape, plan: Plan) -> tuple[Slot, ...]:
    """Return the operations and shapes that the plan runs, first those for reading one prompt."""
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


class KernelRegistryPass:
    """Reads the registry at each request, so a promotion or a revocation shows at once."""

    name = "kernel_registry"

    def __init__(self, registry_path: Path | str | None) -> None:
        self._path = registry_path
        self._registry: Registry | None = None

    def annotate(self, request: Request, plans: Sequence[Plan]) -> Sequence[Annotation]:
        """Return one annotation a plan; raise WorkspaceNotFound or IntegrityError if no registry can be read."""
        if self._path is None:
            return [Annotation(rank=plan.rank, notes=("no kernel registry is here to look into",)) for plan in plans]
        registry = self._opened(self._path)
        health = registry.health()
        notes = (f"the registry in use is the last good one: {health.error}",) if health.error else _behind(health)
        model = find_model(request.model)
        return [
            Annotation(
                rank=plan.rank,
                kernel_optimizations=tuple(_found(registry, plan, slots_of(model, plan))),
                notes=notes,
            )
            for plan in plans
        ]

    def _opened(self, path: Path | str) -> Registry:
        """Return the registry, with the newest snapshot that can be read."""
        if self._registry is None:
            self._registry = Registry.open(path)
        else:
            self._registry.refresh()
        return self._registry


def _behind(health: Health) -> tuple[str, ...]:
    """Return a note if the registry lacks decisions of the ledger beside it."""
    if not health.stale:
        return ()
    return (
        f"the registry is stale: it shows event {health.ledger_seq} of ledger {health.ledger_id}, and the "
        "ledger beside it has newer decisions or is another one; forge kernel list publishes them",
    )


def _found(registry: Registry, plan: Plan, slots: Sequence[Slot]) -> list[KernelOptimizationMetadata]:
    """Return the best kernel of each slot and activation type. Each kernel comes once, at its nearest slot."""
    best: dict[str, KernelOptimizationMetadata] = {}
    for op, shape in slots:
        for dtype in plan.activation_dtypes:
            answer = registry.lookup(op=op, gpu=plan.gpu, dtype=dtype, shape=shape, policy=INSIDE)
            one = _metadata(answer, op=op, shape=dict(shape), plan=plan, dtype=dtype)
            if one is not None and (one.kernel_id not in best or one.octaves < best[one.kernel_id].octaves):
                best[one.kernel_id] = one
    return [best[kernel_id] for kernel_id in sorted(best)]


def _metadata(
    answer: Result, *, op: str, shape: dict[str, int], plan: Plan, dtype: str
) -> KernelOptimizationMetadata | None:
    kernel, evidence = answer.kernel, answer.evidence
    if kernel is None or evidence is None or kernel.gpu != plan.gpu:
        return None
    return KernelOptimizationMetadata.model_validate(
        {
            "kernel_id": kernel.kernel_id,
            "op": op,
            "language": kernel.language,
            "gpu": kernel.gpu,
            "dtype": dtype,
            "speedup": evidence.speedup,
            "speedup_low": evidence.low,
            "speedup_high": evidence.high,
            "baseline": evidence.baseline,
            "shape": dict(evidence.shape),
            "model_shape": shape,
            "match": answer.match,
            "octaves": evidence.distance,
            "verified_seq": evidence.verified_seq,
            "benchmark_seq": evidence.benchmark_seq,
            "promoted_seq": evidence.promoted_seq,
            "notes": "an opportunity: measured for this operation alone, at the shape given, and not applied",
        }
    )
