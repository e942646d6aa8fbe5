"""Tasks: frozen requests for a kernel."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from forge.cli.lists import Asked, show_task, show_tasks
from forge.cli.opening import open_workspace
from forge.cli.options import Home, Json, Limit, OnlyGpu, OnlyOp, Sort
from forge.cli.output import emit_json, emit_table, say
from forge.cli.reference import create_from_reference, import_collection, say_same
from forge.cli.suggest import suggest, unused

if TYPE_CHECKING:
    from forge.pipeline.create import TaskRequest

Language = Annotated[str, typer.Option(help="Language of the candidates, such as cpp or triton.")]
Gpu = Annotated[str, typer.Option(help="The processor, for example h200, or cpu.")]
Dtype = Annotated[str, typer.Option(help="Element type: fp32, fp16 or bf16.")]
Op = Annotated[
    str | None, typer.Option(help="An operation of the catalogue; forge op list shows them.", show_default=False)
]
ShapeTexts = Annotated[
    list[str] | None,
    typer.Option(
        help="Sizes by axis, for example batch=16,hidden_size=4096, or with a range as batch=1..512. May be "
        "repeated: one kernel is timed at each shape, the first is the main one. With --reference: shapes besides "
        "the file's own.",
        show_default=False,
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        help="Instead of --op: a Python file of your own. It has a class Model, get_inputs and "
        "get_init_inputs, or a function.",
        show_default=False,
    ),
]
FunctionName = Annotated[
    str, typer.Option(help="The function of the reference file, if it has several.", show_default=False)
]
Operands = Annotated[
    list[str] | None,
    typer.Option(
        help="An operand of the reference, as x=fp32[16,64], x=fp32[16,64]:-1..1 or index=int64[16]:0..99. Beside "
        "get_inputs() it replaces one operand; may be repeated.",
        show_default=False,
    ),
]
Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant",
        help="A number in place of one that the reference file assigns to a name, as batch_size=16; may be repeated.",
        show_default=False,
    ),
]
Axes = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        help="Sizes of operands that are one axis, counted from 0, as batch=index.0 or seq=x.1,mask.1; may be "
        "repeated.",
        show_default=False,
    ),
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        help="A size that kernels must accept in a range, as hidden.1=1..8192; may be repeated.",
        show_default=False,
    ),
]
OwnName = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="The name of the reference file's operation. Default: the function's; for a class Model the file's.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Freeze what was inferred from the reference file without asking.")]
Objective = Annotated[
    Literal["latency", "throughput", "memory", "balanced"],
    typer.Option(help="What the brief asks the author to optimise. Promotion always goes by the time of one call."),
]
MinSpeedup = Annotated[
    float | None,
    typer.Option(help="Smallest speedup for a promotion, if higher than the policy's.", show_default=False),
]
Baseline = Annotated[
    Literal["best", "eager", "compile"],
    typer.Option(help="The baseline that must be beaten; all baselines are measured."),
]
ContenderFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--contender",
        help="A Python file with a function `contender` that candidates must beat, besides what is installed; "
        "may be repeated.",
        show_default=False,
    ),
]
Constraints = Annotated[
    list[str] | None,
    typer.Option(help="A note for the author as key=value; may be repeated.", show_default=False),
]
DomainText = Annotated[
    str | None,
    typer.Option(
        "--domain",
        help="The least domain of a candidate, as 'hidden_size<=65536, batch%8==0'; a candidate's own must hold it. "
        "Default: the shape alone.",
        show_default=False,
    ),
]
ModelFamily = Annotated[str | None, typer.Option(help="The model family that the kernel is for.", show_default=False)]

app = typer.Typer(help="Tasks: frozen requests for a kernel.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
def create(
    language: Language,
    gpu: Gpu,
    dtype: Dtype,
    op: Op = None,
    shape: ShapeTexts = None,
    reference: Reference = None,
    function: FunctionName = "",
    operand: Operands = None,
    constant: Constants = None,
    axis: Axes = None,
    vary: Vary = None,
    name: OwnName = None,
    yes: Yes = False,
    objective: Objective = "latency",
    min_speedup: MinSpeedup = None,
    baseline: Baseline = "best",
    contender: ContenderFiles = None,
    constraint: Constraints = None,
    model_family: ModelFamily = None,
    domain: DomainText = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Freeze a task, plan it, render its brief and open a run.

    Example: forge task create --op fused_add_rmsnorm --language cpp --gpu cpu --dtype fp32
    --shape batch=16,hidden_size=4096
    """
    from forge.app.tasks.create import read_contenders
    from forge.pipeline.create import TaskRequest

    own = function or operand or constant or axis or vary or name or yes
    _require_one_form(op, shape, reference, own_options=bool(own))
    request = TaskRequest(
        op=op or "",
        language=language,
        gpu=gpu,
        dtype=dtype,
        shape=shape[0] if shape and reference is None else "",
        further_shapes=tuple(shape or ())[0 if reference else 1 :],
        objective=objective,
        minimum_speedup=min_speedup,
        baseline=baseline,
        constraints=_constraints(constraint or []),
        model_family=model_family,
        contenders=read_contenders(contender or []),
        domain=domain,
    )
    if reference is None:
        _create_of_catalogue(request, home=home, as_json=as_json)
        return
    from forge.app.tasks.references import DeclaredTexts

    declared = DeclaredTexts(
        operands=operand or (), axes=axis or (), ranges=vary or (), constants=constant or (), name=name
    )
    create_from_reference(
        reference, request, function=function, declared=declared, yes=yes, home=home, as_json=as_json
    )


def _create_of_catalogue(request: "TaskRequest", *, home: Path | None, as_json: bool) -> None:
    """Freeze a task for an operation of the catalogue, and show it."""
    from forge.app.tasks.create import create_task

    with open_workspace(home) as workspace:
        opened = create_task(workspace, request)
    paths = {"task_id": opened.task_id, "run_id": opened.run_id, "prompt_path": str(opened.prompt_path)}
    tried = opened.admission
    if as_json:
        admission = tried.model_dump(mode="json") if tried else None
        emit_json({**paths, "admission": admission, "same_as": opened.same_as})
    else:
        score = f"{tried.killed} of {tried.mutants} refused" if tried else "not tried"
        emit_table("Task", ("task", "run", "prompt", "known wrong answers"), [(*paths.values(), score)])
    if tried is None:
        say("note: not tried on known wrong answers; that needs the lab: pip install 'tensorpath-forge[lab]'")
    say_same(opened.same_as)
    suggest("next", f"forge new {opened.task_id} {unused('my-kernel')}")


def _require_one_form(op: str | None, shape: list[str] | None, reference: Path | None, *, own_options: bool) -> None:
    """Raise UsageError unless the options name either an operation and a shape, or a reference file."""
    from forge.errors import UsageError

    if reference is None and (op is None or shape is None):
        missing = " and ".join(name for name, given in (("--op", op), ("--shape", shape)) if given is None)
        raise UsageError(f"no {missing}: expected --op and --shape, or --reference FILE", hint="forge op list")
    if reference is not None and op is not None:
        raise UsageError(
            "--reference with --op: expected one or the other: a file of your own, or an operation of the catalogue"
        )
    if reference is None and own_options:
        raise UsageError(
            "--function, --operand, --constant, --axis, --vary, --name and --yes without --reference: expected "
            "--reference FILE as well"
        )


@app.command("import")
def import_problems(
    collection: Annotated[
        Literal["kernelbench"], typer.Argument(help="Collection whose file format the files have.")
    ],
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A problem file, or a folder of them.")],
    language: Language = "cuda",
    gpu: Gpu = "h100",
    dtype: Dtype = "fp32",
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Freeze a task for each problem file of a collection, and give the reason for each refused file.

    Example: forge task import kernelbench KernelBench/level1 --language triton --gpu h100 --dtype fp32
    """
    from forge.pipeline.create import TaskRequest

    request = TaskRequest(op="", language=language, gpu=gpu, dtype=dtype, shape="")
    import_collection(collection, path, request, home=home, as_json=as_json)


def _constraints(items: list[str]) -> dict[str, str]:
    from forge.errors import UsageError

    parsed = {}
    for item in items:
        key, separator, value = item.partition("=")
        if not (separator and key.isidentifier() and value):
            raise UsageError(f"bad constraint {item!r}: expected key=value")
        if key in parsed:
            raise UsageError(f"constraint {key!r} is given twice: expected each key once")
        parsed[key] = value
    return parsed


@app.command("list")
def list_tasks(
    op: OnlyOp = None,
    gpu: OnlyGpu = None,
    sort: Sort = None,
    limit: Limit = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List every task.

    Example: forge task list --op rmsnorm --sort -task
    """
    from forge.app.tasks.known_tasks import all_tasks

    with open_workspace(home) as workspace:
        tasks: list[dict[str, Any]] = all_tasks(workspace)  # Any: a JSON document
    show_tasks(tasks, Asked(sort=sort, limit=limit, as_json=as_json), op=op, gpu=gpu)


@app.command()
def show(
    task: Annotated[str, typer.Argument(help="A task's id, a unique beginning of it, or `last`.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show one task with its digests.

    Example: forge task show cpp_fused_add_rmsnorm
    """
    from forge.app.tasks.known_tasks import find_task

    with open_workspace(home) as workspace:
        created = find_task(workspace, task)
    show_task({"task_id": created.task_id, **created.task.model_dump(mode="json")}, as_json=as_json)
