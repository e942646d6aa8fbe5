"""lookup: the answer that an inference engine would get."""

from typing import Annotated

import typer

from forge.cli.lookup_tables import show_lookup
from forge.cli.options import Home, Json
from forge.cli.output import emit_json, say
from forge.cli.suggest import suggest

Deprecated = Annotated[bool, typer.Option("--deprecated", help="Return a deprecated kernel if there is no other.")]
Nearest = Annotated[
    bool,
    typer.Option(
        "--nearest", help="Also accept a kernel at a shape that wasn't verified, if it lies between verified shapes."
    ),
]
Family = Annotated[
    bool, typer.Option("--family", help="Also accept a kernel for another GPU of the same architecture.")
]
MaxOctaves = Annotated[
    float | None, typer.Option(help="Largest distance to the nearest measured shape, in factors of two.")
]
Since = Annotated[
    str | None, typer.Option(help="Only kernels measured on this day or later, for example 2026-01-31.")
]

Replicated = Annotated[
    bool, typer.Option("--replicated", help="Only kernels whose measurement held on a second occasion.")
]
Resident = Annotated[
    bool, typer.Option("--resident", help="Answer for operands in the last-level cache, as in a decode step.")
]
VouchingKey = Annotated[
    str | None,
    typer.Option(help="The verifier key that must vouch for the answer, or a file with the key.", show_default=False),
]


def lookup(
    op: Annotated[str, typer.Option(help="The operation.")],
    gpu: Annotated[str, typer.Option(help="The processor.")],
    dtype: Annotated[str, typer.Option(help="The element type.")],
    shape: Annotated[str, typer.Option(help="Sizes by axis, for example batch=16,hidden_size=4096.")],
    deprecated: Deprecated = False,
    nearest: Nearest = False,
    family: Family = False,
    max_octaves: MaxOctaves = None,
    since: Since = None,
    replicated: Replicated = False,
    resident: Resident = False,
    language: Annotated[str | None, typer.Option(help="Only kernels in this language.")] = None,
    key: VouchingKey = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Ask the published registry for a kernel, and show why it doesn't return others.

    Example: forge lookup --op fused_add_rmsnorm --gpu cpu --dtype fp32 --shape batch=16,hidden_size=4096
    """
    from forge.app.kernels.lookup_answer import UntrustedSlot, look_up
    from forge.lookup import Policy

    policy = Policy(
        shape="nearest" if nearest else "between",
        gpu="family" if family else "exact",
        deprecated=deprecated,
        max_octaves=max_octaves,
        measured_since=since,
        evidence="replicated" if replicated else "provisional",
        regime="resident" if resident else "cold",
    )
    answer = look_up(home, UntrustedSlot(op, gpu, dtype, shape, language), policy=policy, key=key)
    if as_json:
        emit_json(answer)
    else:
        show_lookup(answer)
    if family and answer["ran_on_gpu"] is False:
        seen = "nothing here was verified or measured on it, and its architecture"
        say(f"note: {gpu!r} is a GPU that nothing ran on: {seen}, {answer['gpu_arch']}, is the catalogue's word")
    if answer["match"] == "none":
        suggest("try", "forge kernel list")
        raise typer.Exit(1)
