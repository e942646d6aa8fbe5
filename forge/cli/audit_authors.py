"""audit: candidates by author, the claims about them, and their results."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from forge.cli.audit_options import Author, DType, EvidenceOptions, Gpu, Language, Op
from forge.cli.output import emit_table, simulated_text

if TYPE_CHECKING:
    from forge.app.audit.answer import Filter

Limit = Annotated[int, typer.Option(help="List only this many of the newest.", min=0, max=1_000_000)]
Since = Annotated[
    str | None, typer.Option(metavar="DAY", help="Only from this day in UTC on: 2026-01-31.", show_default=False)
]
Until = Annotated[
    str | None, typer.Option(metavar="DAY", help="Only before this day in UTC: 2026-01-31.", show_default=False)
]
RefusedBy = Annotated[
    Literal["code", "gate", "stage", "task", "op", "author", "day", "month"],
    typer.Option(help="Property to count by."),
]
Code = Annotated[str | None, typer.Option(help="Only this reason code.", show_default=False)]
Gate = Annotated[
    str | None, typer.Option(help="Only candidates for which this gate failed first.", show_default=False)
]
Task = Annotated[str | None, typer.Option(help="Only this task, by its full id.", show_default=False)]


def rejections(
    form: EvidenceOptions,
    by: RefusedBy = "code",
    code: Code = None,
    gate: Gate = None,
    task: Task = None,
    op: Op = None,
    gpu: Gpu = None,
    author: Author = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 20,
) -> None:
    """Count the reasons for refusals, and show the newest refusals in full.

    Example: forge audit rejections --by gate --code INCORRECT_NUMERICAL --since 2026-01-01
    """
    from forge.app.audit.authors import rejections as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "author": author}
    answer = form.give_quickly(
        lambda workspace: asked(
            workspace,
            by=by,
            code=code,
            gate=gate,
            task=task,
            since=since,
            until=until,
            limit=limit,
            wanted=wanted,
        )
    )
    newest = answer.more["newest"]
    if not (form.as_json or form.as_csv) and isinstance(newest, list):
        _show_newest(newest)


def _show_newest(newest: list[dict[str, object]]) -> None:
    columns = ("seq", "stage", "reason_code", "simulated", "gate", "author", "message", "run_id")
    shown = ({**one, "simulated": simulated_text(one["simulated"])} for one in newest)
    emit_table("Newest", columns, [[one[name] for name in columns] for one in shown])


def claims(
    form: EvidenceOptions,
    by: Annotated[
        Literal["claimant", "author"],
        typer.Option(help="Group by who made the claim, or by the author of the candidate."),
    ] = ("claimant"),
) -> None:
    """Compare claimed with measured speed, for each claimant or author (a model or a person).

    Example: forge audit claims --by author
    """
    from forge.app.audit.authors import claims as asked

    form.give_quickly(lambda workspace: asked(workspace, by=by))


def experiments(
    form: EvidenceOptions,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="Words to find in the hypothesis.", show_default=False)
    ] = None,
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    author: Author = None,
    axis: Annotated[
        str | None, typer.Option(help="Only experiments that changed this axis, such as tiling.", show_default=False)
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option(
            help="Only experiments that changed an axis of this layer: L1, L2, L3 or L4.", show_default=False
        ),
    ] = None,
    ended: Annotated[
        str | None,
        typer.Option(
            help="Only experiments with this end: improved, no_change, regressed, incorrect or build_failed.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = 50,
) -> None:
    """List experiments and their results, including failures; filter by words, operation, layer, axis or end.

    Example: forge audit experiments "shared memory" --op softmax --ended regressed
    """
    from forge.app.audit.authors import experiments as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype, "author": author}
    form.give_quickly(
        lambda workspace: asked(workspace, text=text, axis=axis, layer=layer, ended=ended, limit=limit, wanted=wanted)
    )


def effectiveness(
    form: EvidenceOptions,
    by: Annotated[
        Literal["author", "template", "skill", "op", "language"],
        typer.Option(help="Group by author (a model or a person), prompt template, skill, operation or language."),
    ] = "author",
    op: Op = None,
    gpu: Gpu = None,
    dtype: DType = None,
    language: Language = None,
) -> None:
    """Show how many runs reached each phase, and their cost, for each author, prompt template or skill.

    Example: forge audit effectiveness --by skill --op rmsnorm
    """
    from forge.app.audit.authors import effectiveness as asked

    wanted: dict[Filter, str | None] = {"op": op, "gpu": gpu, "dtype": dtype, "language": language}
    form.give_quickly(lambda workspace: asked(workspace, by=by, wanted=wanted))


COMMANDS = (rejections, claims, experiments, effectiveness)
"""Commands of this file, in the order of the help."""
