"""Renders the history of one operation as Markdown: kernels, experiments, the effect of each change.

The same ledger gives the same text.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low

from forge.domain.axes import AXES, ENDS, LAYER_NAMES
from forge.pipeline.templates import environment

TEMPLATE = "notes.md.j2"
Record = Mapping[str, object]


def render_notes(
    *,
    op: str,
    gpu: str | None,
    seq: int,
    tasks: Sequence[Record],
    experiments: Sequence[Record],
    undecided: Sequence[Record],
    kernels: Sequence[Record],
    lessons: Sequence[Record],
) -> str:
    """Return Markdown. `undecided` are submitted candidates that were neither refused nor fully timed."""
    ended = [str(one["ended"]) for one in experiments]
    return (
        environment()
        .get_template(TEMPLATE)
        .render(
            op=op,
            gpu=gpu,
            seq=seq,
            tasks=tasks,
            experiments=experiments,
            ends=[(end, ended.count(end)) for end in ENDS if end in ended],
            kernels=kernels,
            lessons=lessons,
            columns=list(ENDS),
            changes=changes(experiments),
            open_questions=open_questions(tasks, experiments, undecided, kernels),
        )
    )


def changes(experiments: Sequence[Record]) -> list[dict[str, object]]:
    """Return for each declared axis its number of experiments, their ends, and worst, typical and best speedup."""
    found = []
    for layer, axes in AXES.items():
        for axis in axes:
            of_axis = [one for one in experiments if one["axis"] == axis]
            if not of_axis:
                continue
            ended = [one["ended"] for one in of_axis]
            ratios = sorted(float(str(one["speedup"])) for one in of_axis if one["speedup"] is not None)
            figures = (ratios[0], median_low(ratios), ratios[-1]) if ratios else ()
            shown = [f"{ratio:.2f}x" for ratio in figures] or ["", "", ""]
            found.append(
                {
                    "layer": layer,
                    "layer_name": LAYER_NAMES[layer],
                    "axis": axis,
                    "n": len(of_axis),
                    "counts": [ended.count(end) for end in ENDS],
                    **dict(zip(("worst", "typical", "best"), shown, strict=True)),
                }
            )
    return found


def open_questions(
    tasks: Sequence[Record],
    experiments: Sequence[Record],
    undecided: Sequence[Record],
    kernels: Sequence[Record],
) -> list[str]:
    """Return the open questions that the ledger shows, in the order of their events."""
    concluded = {one["task_id"] for one in experiments}
    kept = {one["task_id"] for one in kernels if one["status"] == "active"}
    questions = [
        f"`{one['task_id']}`: no candidate came to an end." for one in tasks if one["task_id"] not in concluded
    ]
    questions += [
        f"`{one['task_id']}`: tried {_times(experiments, one)}, and no kernel stands."
        for one in tasks
        if one["task_id"] in concluded and one["task_id"] not in kept
    ]
    questions += [
        f"Run `{one['run_id']}`: candidate {str(one['candidate'])[:12]} was submitted (event {one['submitted_seq']}) "
        "and neither refused nor fully timed."
        for one in undecided
    ]
    undeclared = sum(one["axis"] is None for one in experiments)
    if undeclared:
        questions.append(
            f"{undeclared} of {len(experiments)} experiments declared no axis, so it is unclear what they show."
        )
    return questions


def _times(experiments: Sequence[Record], task: Record) -> str:
    count = sum(one["task_id"] == task["task_id"] for one in experiments)
    return "once" if count == 1 else f"{count} times"
