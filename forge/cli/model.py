"""model: what adopted kernels are worth in a whole model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, emit_table

app = typer.Typer(
    help="Measurements of whole models, with and without adopted kernels.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def model() -> None:
    """Keep `measure` a command of the noun, although it is the only one."""


@app.command()
def measure(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file that builds a model.")],
    workload: Annotated[str, typer.Option(help="decode:b=16,context=1024 or prefill:b=1,tokens=4096.")],
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="eager, compile, or graphs: compiled, then captured. Repeat it for several.", show_default="eager"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the weights and the tokens.")] = 0,
    window_ms: Annotated[float, typer.Option(help="Least time of a window.", min=1, max=10_000)] = 100.0,
    pairs: Annotated[
        int | None, typer.Option(help="Number of process pairs; default: the policy's.", min=2, max=64)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of windows of each side; default: the policy's.", min=2, max=400)
    ] = None,
    device: Annotated[str | None, typer.Option(help="The GPU, by its UUID or index.", show_default=False)] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a model with its own functions and with adopted kernels, side by side, and record the result.

    Example: forge model measure llama.py --workload decode:b=16,context=1024 --mode eager
    """
    from forge.app.models.measuring import measure as measured
    from forge.domain.model_measurement import parse_mode, parse_workload

    asked, modes = parse_workload(workload), [parse_mode(one) for one in mode or ["eager"]]
    with open_workspace(home) as workspace:
        found: list[dict[str, Any]] = measured(  # Any: JSON documents
            workspace,
            file,
            workload=asked,
            modes=modes,
            seed=seed,
            window_s=window_ms / 1000,
            process_pairs=pairs,
            rounds=rounds,
            device=device,
        )
    if as_json:
        emit_json({"measurements": found})
    else:
        for one in found:
            _show(one)


def _show(found: dict[str, Any]) -> None:  # Any: a JSON document
    compared = found["comparison"]
    rows = [
        ("event", found["seq"]),
        ("evidence", "end_to_end" if found["conclusive"] else "end_to_end, inconclusive: the control is too noisy"),
        ("speedup of a step", _interval(compared["speedup"])),
        ("control", _interval(compared["control"])),
        ("predicted from the kernels' own evidence", f"{compared['predicted']:.4f}x"),
        ("share of the step that is replaced", f"{compared['replaced_share']:.1%}"),
        ("error of the logits, own and adopted", f"{compared['own_error']:.2e} and {compared['adopted_error']:.2e}"),
        ("equal greedy tokens", f"{compared['equal_tokens']} of {compared['greedy_steps']} steps"),
    ]
    emit_table(f"{found['model']} on {found['gpu']}, {found['mode']}", ("", ""), rows)
    uses = [(one["op"], one["backend"], one["kernel_id"] or one["reason"], one["hits"]) for one in found["uses"]]
    emit_table("What the adopted side ran", ("operation", "took", "kernel or reason", "calls"), uses)


def _interval(one: dict[str, float]) -> str:
    return f"{one['ratio']:.4f}x ({one['low']:.4f} to {one['high']:.4f})"
