"""Lessons: conclusions from experiments, proposed and then accepted into a playbook."""

from typing import Annotated, Any

import typer

from forge.cli.lists import show_lessons
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json
from forge.cli.output import emit_answer, short
from forge.cli.suggest import suggest

app = typer.Typer(
    help="Lessons: conclusions from experiments, for playbooks.", no_args_is_help=True, rich_markup_mode=None
)
LessonId = Annotated[str, typer.Argument(metavar="LESSON", help="A lesson's id; forge lesson list shows them.")]


@app.command()
def propose(
    op: Annotated[str, typer.Option(help="The operation that the lesson is about.")],
    runs: Annotated[
        list[str],
        typer.Option("--from", metavar="RUN", help="A run whose experiment supports the lesson; may be repeated."),
    ],
    text: Annotated[str, typer.Option(help="The lesson, in one line.")],
    playbook: Annotated[
        str | None, typer.Option(help="The skill to amend. Default: the language's playbook.", show_default=False)
    ] = None,
    ended: Annotated[
        str | None,
        typer.Option(
            help="End that the lesson predicts: improved, no_change, regressed, incorrect or build_failed. "
            "Default: the end of its experiments.",
            show_default=False,
        ),
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Propose a lesson. It needs closed experiments, and none of them may contradict it.

    Example: forge lesson propose --op rmsnorm --from last --text "Rows of 4096 gain from two loads in flight."
    """
    from forge.app.lessons import lesson

    with open_workspace(home) as workspace:
        made = lesson.propose(workspace, op=op, runs=tuple(runs), text=text, playbook=playbook, ended=ended)
        found = lesson.described(made)
    _show(found, as_json=as_json)
    suggest("next", f"forge lesson accept {found['lesson_id']} --by NAME")


@app.command()
def accept(
    lesson_id: LessonId,
    by: Annotated[str, typer.Option(metavar="NAME", help="Name of the person who accepts it.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Accept a lesson into its playbook. Later briefs quote it.

    Example: forge lesson accept rmsnorm-1a2b3c4d --by ada
    """
    from forge.app.lessons import lesson

    with open_workspace(home) as workspace:
        found = lesson.described(lesson.accept(workspace, lesson_id, by=by))
    _show(found, as_json=as_json)
    suggest("next", f"forge lesson show {lesson_id}")


@app.command("list")
def list_lessons(home: Home = None, as_json: Json = False) -> None:
    """List every lesson.

    Example: forge lesson list
    """
    from forge.app.lessons import lesson

    with open_workspace(home) as workspace:
        found: list[dict[str, Any]] = [  # Any: a JSON document
            lesson.described(one) for one in lesson.lessons(workspace)
        ]
    show_lessons(found, as_json=as_json)


@app.command("show")
def show_lesson(lesson_id: LessonId, home: Home = None, as_json: Json = False) -> None:
    """Show a lesson, its experiments, and the version of the playbook that has it.

    Example: forge lesson show rmsnorm-1a2b3c4d
    """
    from forge.app.lessons import lesson

    with open_workspace(home) as workspace:
        found = lesson.described(lesson.find_lesson(workspace, lesson_id))
    _show(found, as_json=as_json)


def _show(document: dict[str, Any], *, as_json: bool) -> None:  # Any: a JSON document
    shown = {
        **document,
        "experiment_seqs": ", ".join(map(str, document["experiment_seqs"])),
        "playbook_sha256": short(document["playbook_sha256"]) if document["playbook_sha256"] else None,
    }
    rows = [(name, value) for name, value in shown.items() if value is not None]
    emit_answer(document, "Lesson", ("", ""), rows, as_json=as_json)
