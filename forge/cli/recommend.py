"""recommend: how to deploy a model, and which verified kernels could help."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table, say, shape_text
from forge.cli.suggest import suggest

# Any: a JSON document
Document = dict[str, Any]


def register(app: typer.Typer) -> None:
    """Add this command to the top level."""
    app.command()(recommend)


def recommend(
    model: Annotated[list[str], typer.Option(help="The model; two to four to compare them.")],
    workload: Annotated[str, typer.Option(help="chat, codegen, summarization, batch or embedding.")] = "chat",
    priority: Annotated[str, typer.Option(help="latency, throughput, cost or balanced.")] = "balanced",
    gpu: Annotated[list[str] | None, typer.Option(help="Only this GPU; may be repeated.", show_default=False)] = None,
    price: Annotated[
        list[str] | None, typer.Option(metavar="GPU=PRICE", help="Of one GPU for an hour.", show_default=False)
    ] = None,
    profile: Annotated[
        list[Path] | None, typer.Option(help="A JSON file of measured profiles.", show_default=False)
    ] = None,
    max_gpus: Annotated[int, typer.Option(help="At most so many GPUs.")] = 8,
    quantization: Annotated[
        list[str] | None, typer.Option(help="bf16, fp16, fp8, int8 or int4; may be repeated.", show_default=False)
    ] = None,
    backend: Annotated[
        list[str] | None, typer.Option(help="Only this backend; may be repeated.", show_default=False)
    ] = None,
    prompt_tokens: Annotated[int | None, typer.Option(help="Of one request.", show_default=False)] = None,
    output_tokens: Annotated[int | None, typer.Option(help="Of one request.", show_default=False)] = None,
    concurrency: Annotated[int | None, typer.Option(help="Requests at once.", show_default=False)] = None,
    min_context: Annotated[int | None, typer.Option(help="Tokens that must fit.", show_default=False)] = None,
    max_ttft_ms: Annotated[float | None, typer.Option(help="Until the first token.", show_default=False)] = None,
    max_tpot_ms: Annotated[float | None, typer.Option(help="Between two tokens.", show_default=False)] = None,
    max_latency_ms: Annotated[float | None, typer.Option(help="Until the last token.", show_default=False)] = None,
    min_throughput: Annotated[
        float | None, typer.Option(help="Tokens a second, of the whole plan.", show_default=False)
    ] = None,
    min_requests_per_minute: Annotated[
        float | None, typer.Option(help="Of the whole plan.", show_default=False)
    ] = None,
    max_price_per_hour: Annotated[float | None, typer.Option(help="Of the whole plan.", show_default=False)] = None,
    max_price_per_month: Annotated[float | None, typer.Option(help="Of the whole plan.", show_default=False)] = None,
    max_price_per_million_tokens: Annotated[
        float | None, typer.Option(help="Of the tokens that throughput counts.", show_default=False)
    ] = None,
    max_memory_gb: Annotated[
        float | None, typer.Option(help="That the plan fills on each GPU.", show_default=False)
    ] = None,
    prefer_gpu: Annotated[str | None, typer.Option(help="Decides between equals.", show_default=False)] = None,
    prefer_backend: Annotated[str | None, typer.Option(help="Decides between equals.", show_default=False)] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Rank deployments of a model by an analytic estimate or measured profiles, with the kernels that could help.

    Example: forge recommend --model llama3.1-8b --workload chat --gpu h200 --max-ttft-ms 200
    """
    from forge.app.recommend import recommend as answer

    constraints = {
        "gpus": gpu,
        "max_gpus": max_gpus,
        "quantizations": quantization,
        "backends": backend,
        "concurrency": concurrency,
        "min_context_tokens": min_context,
        "max_ttft_ms": max_ttft_ms,
        "max_tpot_ms": max_tpot_ms,
        "max_latency_ms": max_latency_ms,
        "min_throughput_tok_s": min_throughput,
        "min_requests_per_minute": min_requests_per_minute,
        "max_price_per_hour": max_price_per_hour,
        "max_price_per_month": max_price_per_month,
        "max_price_per_million_tokens": max_price_per_million_tokens,
        "max_memory_gb": max_memory_gb,
    }
    asked = {
        "workload": workload,
        "priority": priority,
        "prompt_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "prefer_gpu": prefer_gpu,
        "prefer_backend": prefer_backend,
        "constraints": {name: value for name, value in constraints.items() if value is not None},
    }
    found: Document = answer(home, models=model, asked=asked, prices=price or (), profiles=profile or ())
    answers: list[Document] = found.get("models", [found])
    if as_json:
        emit_json(found)
    else:
        for one in answers:
            _show(one)
    say(found["summary"])
    if all(one["recommended"] is None for one in answers):
        suggest("try", "forge recommend --help")
        raise typer.Exit(1)


def _show(found: Document) -> None:
    """The plans of one model, the kernels that could help, and what to know."""
    columns = (
        "",
        "GPUs",
        "in",
        "backend",
        "first token ms",
        "token ms",
        "tokens/s",
        "GB",
        "price/h",
        "score",
        "basis",
    )
    title = f"{found['model_name']}, {found['workload']}, by {found['priority']}"
    if found["plans"]:
        emit_table(title, columns, [_row(plan) for plan in found["plans"]])
    kernels = {one["kernel_id"]: one for plan in found["plans"] for one in plan["kernel_optimizations"]}
    if kernels:
        emit_table(
            "Kernels that could help: measured alone, not applied, not counted above",
            ("kernel", "speedup", "over", "at", "asked here"),
            [_kernel_row(one) for one in kernels.values()],
        )
    notes = [note for plan in found["plans"] for note in plan["notes"]]
    settings = found["config"] or {"command": None, "notes": []}
    for note in dict.fromkeys([*found["notes"], *notes, *settings["notes"]]):
        say(f"note: {note}")
    if settings["command"]:
        say(f"start it with: {shlex.join(settings['command'])}")


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


def _kernel_row(one: Document) -> tuple[object, ...]:
    speedup = f"{one['speedup']:.2f}x [{one['speedup_low']:.2f}, {one['speedup_high']:.2f}]"
    return one["kernel_id"], speedup, one["baseline"], shape_text(one["shape"]), shape_text(one["model_shape"])
