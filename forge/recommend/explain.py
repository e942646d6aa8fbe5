"""Sentences about plans. They state the plan's own figures and nothing else."""

from collections.abc import Sequence

from forge.recommend.options import Option
from forge.recommend.plan import ConstraintCheck, LeftOut, Plan
from forge.recommend.quantization import STORAGE
from forge.recommend.request import Request
from forge.recommend.score import Scored

IDEALISED = "estimated from published rates, at best: a real server is slower"
"""Words beside each estimated figure."""
UNITS = {
    "ttft_ms": "time to the first token {:,.1f} ms",
    "tpot_ms": "time per output token {:,.2f} ms",
    "latency_ms": "time to the last token {:,.0f} ms",
    "memory_gb": "memory of a GPU {:,.1f} GB",
    "price_per_hour": "price of an hour {:,.2f}",
    "price_per_month": "price of a month {:,.0f}",
    "price_per_million_tokens": "price of a million tokens {:,.3f}",
    "throughput_tok_s": "throughput {:,.0f} tokens/s",
    "requests_per_minute": "{:,.1f} requests a minute",
    "concurrency": "{:,.0f} requests in memory together",
}
"""Formats of a check's value."""


def explanation_of(scored: Scored) -> str:
    """Return what the plan is, its figures with their basis, and which limits it meets or misses."""
    one = scored.option
    basis = f"measured by {one.profile.measured_by}" if one.profile else IDEALISED
    parts = [f"{deployment_of(one)}: {_figures(one)}, {basis}."]
    if one.profile is None:
        parts.append(_bounds(one))
    if STORAGE[one.quantization].bits < one.model.native_bits:
        parts.append(f"What {one.quantization} costs in accuracy wasn't measured.")
    if one.running < one.traffic.concurrency:
        parts.append(
            f"Only {one.running} of {one.traffic.concurrency} requests fit into memory together; the others wait."
        )
    if scored.checks:
        parts.append(_limits(scored))
    return " ".join(parts)


def deployment_of(option: Option) -> str:
    """Return a deployment in a few words, for example `2 x NVIDIA H200 in fp8 with vllm`."""
    return f"{option.gpus} x {option.processor.name} in {option.quantization} with {option.backends[0]}"


def check_text(check: ConstraintCheck) -> str:
    """Return a check in words: what is found, and the limit."""
    return f"{UNITS[check.name].format(check.found)} (limit {check.limit:g})"


def summary_of(
    request: Request,
    *,
    plan: Plan | None,
    nearest: Plan | None,
    left_out: Sequence[LeftOut],
) -> str:
    """Return the answer in a sentence or two."""
    if plan is not None:
        held = " that meets every constraint" if plan.checks else ""
        return (
            f"For {request.model}, {request.workload}, by {request.priority}: the best plan{held} is "
            f"{plan.gpus} x {plan.gpu_name} in {plan.quantization} with {plan.backend}, {_basis(plan)}."
        )
    if nearest is None:
        reasons = "; ".join(f"{one.gpu}: {one.reason}" for one in left_out[:3])
        return f"No plan for {request.model} fits on any of the GPUs. {reasons}."
    missed = ", ".join(check_text(check) for check in nearest.checks if not check.met)
    return (
        f"No plan for {request.model} meets the constraints. The nearest is {nearest.gpus} x {nearest.gpu_name} in "
        f"{nearest.quantization} with {nearest.backend}, which misses: {missed}."
    )


def _basis(plan: Plan) -> str:
    return "as measured" if plan.benchmark_source == "measured" else IDEALISED


def _figures(option: Option) -> str:
    each = "" if option.tpot_ms is None else f"{option.tpot_ms:,.2f} ms per output token, "
    return (
        f"{option.ttft_ms:,.1f} ms to the first token, {each}{option.throughput_tok_s:,.0f} tokens/s with "
        f"{option.running} requests at once, {option.memory_gb:,.1f} GB on each GPU"
    )


def _bounds(option: Option) -> str:
    said = [f"Reading the prompt is bound by {option.first.bound}"] if option.first else []
    if option.step:
        said.append(f"making tokens by {option.step.bound}")
    return ", ".join(said) + "."


def _limits(scored: Scored) -> str:
    missed = [check_text(check) for check in scored.checks if not check.met]
    if missed:
        return f"Misses: {', '.join(missed)}."
    if scored.option.profile is not None:
        return "Meets every constraint as measured."
    return "Meets every constraint at best; that it does in practice needs a measurement."
