"""recommend: ways to deploy a model, and verified kernels that could help."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, say, shape_text
from forge.cli.suggest import suggest

# Any: a JSON document
Document = dict[str, Any]

Model = Annotated[list[str], typer.Option(help="The model. Repeat it two to four times to compare models.")]
Workload = Annotated[str, typer.Option(help="chat, codegen, summarization, batch or embedding.")]
Priority = Annotated[str, typer.Option(help="latency, throughput, cost or balanced.")]
Gpus = Annotated[list[str] | None, typer.Option(help="Only this GPU; may be repeated.", show_default=False)]
Prices = Annotated[
    list[str] | None,
    typer.Option(metavar="GPU=PRICE", help="Price of one GPU for one hour, in your currency.", show_default=False),
]
Profiles = Annotated[list[Path] | None, typer.Option(help="A JSON file of measured profiles.", show_default=False)]
MaxGpus = Annotated[int, typer.Option(help="Largest number of GPUs of a plan.")]
Quantizations = Annotated[
    list[str] | None, typer.Option(help="bf16, fp16, fp8, int8 or int4; may be repeated.", show_default=False)
]
Backends = Annotated[list[str] | None, typer.Option(help="Only this backend; may be repeated.", show_default=False)]
PromptTokens = Annotated[int | None, typer.Option(help="Prompt tokens of one request.", show_default=False)]
OutputTokens = Annotated[int | None, typer.Option(help="Output tokens of one request.", show_default=False)]
Concurrency = Annotated[int | None, typer.Option(help="Number of requests at once.", show_default=False)]
MinContext = Annotated[
    int | None, typer.Option(help="Smallest context that must fit, in tokens.", show_default=False)
]
MaxTtftMs = Annotated[
    float | None, typer.Option(help="Longest time to the first token, in milliseconds.", show_default=False)
]
MaxTpotMs = Annotated[
    float | None, typer.Option(help="Longest time between two tokens, in milliseconds.", show_default=False)
]
MaxLatencyMs = Annotated[
    float | None, typer.Option(help="Longest time to the last token, in milliseconds.", show_default=False)
]
MinThroughput = Annotated[
    float | None, typer.Option(help="Smallest number of tokens a second of the whole plan.", show_default=False)
]
MinRequestsPerMinute = Annotated[
    float | None, typer.Option(help="Smallest number of requests a minute of the whole plan.", show_default=False)
]
MaxPricePerHour = Annotated[
    float | None,
    typer.Option(
        help="Highest price of the whole plan for one hour, in the currency of --price.", show_default=False
    ),
]
MaxPricePerMonth = Annotated[
    float | None,
    typer.Option(
        help="Highest price of the whole plan for one month, in the currency of --price.", show_default=False
    ),
]
MaxPricePerMillionTokens = Annotated[
    float | None,
    typer.Option(help="Highest price of a million tokens, counted as in the throughput.", show_default=False),
]
MaxMemoryGb = Annotated[
    float | None,
    typer.Option(help="Largest memory that the plan fills on each GPU, in decimal gigabytes.", show_default=False),
]
Plans = Annotated[int, typer.Option("--limit", metavar="N", help="Show at most N plans.", min=1, max=1000)]
PreferGpu = Annotated[str | None, typer.Option(help="GPU that decides between equal plans.", show_default=False)]
PreferBackend = Annotated[
    str | None, typer.Option(help="Backend to prefer among plans that are otherwise equal.", show_default=False)
]


def recommend(
    model: Model,
    workload: Workload = "chat",
    priority: Priority = "balanced",
    gpu: Gpus = None,
    price: Prices = None,
    profile: Profiles = None,
    max_gpus: MaxGpus = 8,
    quantization: Quantizations = None,
    backend: Backends = None,
    prompt_tokens: PromptTokens = None,
    output_tokens: OutputTokens = None,
    concurrency: Concurrency = None,
    min_context: MinContext = None,
    max_ttft_ms: MaxTtftMs = None,
    max_tpot_ms: MaxTpotMs = None,
    max_latency_ms: MaxLatencyMs = None,
    min_throughput: MinThroughput = None,
    min_requests_per_minute: MinRequestsPerMinute = None,
    max_price_per_hour: MaxPricePerHour = None,
    max_price_per_month: MaxPricePerMonth = None,
    max_price_per_million_tokens: MaxPricePerMillionTokens = None,
    max_memory_gb: MaxMemoryGb = None,
    prefer_gpu: PreferGpu = None,
    prefer_backend: PreferBackend = None,
    limit: Plans = 4,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Rank deployments of a model by an analytic estimate or measured profiles, with the kernels that could help.

    Example: forge recommend --model llama3.1-8b --workload chat --gpu h200 --max-ttft-ms 200
    """
    from forge.app.recommend import recommend as answer

    allowed = {"gpus": gpu, "max_gpus": max_gpus, "quantizations": quantization, "backends": backend}
    load = {"concurrency": concurrency, "min_context_tokens": min_context, "max_memory_gb": max_memory_gb}
    times = {"max_ttft_ms": max_ttft_ms, "max_tpot_ms": max_tpot_ms, "max_latency_ms": max_latency_ms}
    rates = {"min_throughput_tok_s": min_throughput, "min_requests_per_minute": min_requests_per_minute}
    costs = {"max_price_per_hour": max_price_per_hour, "max_price_per_month": max_price_per_month}
    per_token = {"max_price_per_million_tokens": max_price_per_million_tokens}
    limits: Document = {**allowed, **load, **times, **rates, **costs, **per_token}
    aims = {"workload": workload, "priority": priority, "prefer_gpu": prefer_gpu, "prefer_backend": prefer_backend}
    constraints = {name: value for name, value in limits.items() if value is not None}
    asked: Document = {
        **aims,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "plans": limit,
        "constraints": constraints,
    }
    _emit(answer(home, models=model, asked=asked, prices=price or (), profiles=profile or ()), as_json=as_json)


def _emit(found: Document, *, as_json: bool) -> None:
    """Give the answer, and exit with status 1 if no plan meets the constraints."""
    answers: list[Document] = found.get("models", [found])
    if as_json:
        emit_json(found)
    else:
        for one in answers:
            _show(one)
        _show_models(found["end_to_end"])
    say(found["summary"])
    if all(one["recommended"] is None for one in answers):
        suggest("try", "forge recommend --help")
        raise typer.Exit(1)


def _show(found: Document) -> None:
    """Show the plans of one model, the kernels that could help, and notes."""
    columns = (
        "",
        "GPUs",
        "weights",
        "backend",
        "first token ms",
        "token ms",
        "tokens/s",
        "GB",
        "price/h",
        "score",
        "basis",
    )
    title = f"{found['model_name']}, {found['workload']}, priority: {found['priority']}"
    if found["plans"]:
        emit_table(title, columns, [_row(plan) for plan in found["plans"]])
    kernels = kernel_rows(found["plans"])
    if kernels:
        emit_table(
            "Kernels that could help: measured alone, not applied, not counted above",
            ("kernel", "speedup", "over", "at", "asked here", "by plan"),
            kernels,
        )
    notes = [note for plan in found["plans"] for note in plan["notes"]]
    settings = found["config"] or {"command": None, "notes": []}
    for note in dict.fromkeys([*found["notes"], *notes, *settings["notes"]]):
        say(f"note: {note}")
    if settings["command"]:
        say(f"start it with: {shlex.join(settings['command'])}")


def _show_models(measured: list[Document]) -> None:
    """Show what was measured in whole models, apart from the kernels' own numbers."""
    if measured:
        emit_table(
            "Measured in whole models, end to end: of these files alone, not applied, not counted above",
            ("model", "workload", "mode", "GPU", "speedup of a step", "event"),
            [_model_row(one) for one in measured],
        )


def _model_row(one: Document) -> tuple[object, ...]:
    workload, found = one["workload"], one["comparison"]["speedup"]
    sizes = f"context={workload['context']}" if workload["kind"] == "decode" else f"tokens={workload['tokens']}"
    shown = f"{found['ratio']:.3f}x [{found['low']:.3f}, {found['high']:.3f}]"
    speedup = shown if one["conclusive"] else f"{shown}, inconclusive"
    return (
        one["model"],
        f"{workload['kind']}:b={workload['batch']},{sizes}",
        one["mode"],
        one["gpu"],
        speedup,
        one["seq"],
    )


def _row(plan: Document) -> tuple[object, ...]:
    each, price = plan["tpot_ms"], plan["price_per_hour"]
    return (
        f"{plan['rank']}" if plan["meets_constraints"] else f"{plan['rank']} misses",
        f"{plan['gpus']} x {plan['gpu_name']}",
        plan["quantization"],
        plan["backend"],
        f"{plan['ttft_ms']['value']:.1f}",
        "" if each is None else f"{each['value']:.2f}",
        f"{plan['throughput_tok_s']['value']:.0f}",
        f"{plan['memory_gb']['value']:.1f}",
        "" if price is None else f"{price:.2f}",
        f"{plan['scores']['weighted_total']:.3f}",
        plan["benchmark_source"],
    )


def kernel_rows(plans: list[Document]) -> list[tuple[object, ...]]:
    """Return a row for each kernel and shape that a plan asks it for, with the ranks of the plans that do."""
    asked: dict[tuple[object, ...], list[str]] = {}
    for plan in plans:
        for one in plan["kernel_optimizations"]:
            speedup = f"{one['speedup']:.3f}x [{one['speedup_low']:.3f}, {one['speedup_high']:.3f}]"
            measured = (one["kernel_id"], speedup, one["baseline"], shape_text(one["shape"]))
            asked.setdefault((*measured, shape_text(one["model_shape"])), []).append(str(plan["rank"]))
    return [(*row, ", ".join(ranks)) for row, ranks in asked.items()]
