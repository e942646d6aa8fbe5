"""The arguments of each tool. Unknown ones are refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from forge.app.desk.limits import LONGEST_KEY

LONGEST_WAIT_S = 45
"""Longest time that `wait` takes, in seconds: many clients give a tool up after 60."""
Text = Annotated[str, Field(min_length=1, max_length=200)]
Offset = Annotated[int, Field(ge=0, le=10**7, description="Character to begin with.")]


class ToolForm(BaseModel):
    """Base of the arguments of a tool."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class TaskListForm(ToolForm):
    """Which tasks."""

    op: Text | None = None
    gpu: Text | None = None
    language: Text | None = None
    after: Annotated[str | None, Field(max_length=200, description="`next` of the page before.")] = None


class BriefForm(ToolForm):
    """Which task."""

    task: Text
    offset: Offset = 0


class SubmitForm(ToolForm):
    """The candidate."""

    task: Text
    files: Annotated[
        dict[str, str],
        Field(
            max_length=16,
            description="kernel.py, reference.py, test_correctness.py, bench.py, metadata.json: name to text.",
        ),
    ]
    until: Literal["verify", "bench", "promote"] = "promote"
    key: Annotated[
        str | None,
        Field(max_length=LONGEST_KEY, description="Your own name for this try; the same key never submits twice."),
    ] = None


class RunForm(ToolForm):
    """Which run."""

    run: Text


class WaitForm(ToolForm):
    """Which run, and for how long."""

    run: Text
    seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT_S)] = LONGEST_WAIT_S


class LookupForm(ToolForm):
    """What a kernel is looked up for."""

    op: Text
    gpu: Text
    dtype: Text
    shape: Annotated[str, Field(max_length=500, description="batch=16,hidden_size=4096")]
    nearest: bool = False


class SourceForm(ToolForm):
    """Which kernel, and which of its files."""

    kernel: Text
    file: Text = "kernel.py"
    offset: Offset = 0


class NotesForm(ToolForm):
    """Which operation."""

    op: Text
    gpu: Text | None = None


class RecommendForm(ToolForm):
    """What a deployment is recommended for."""

    model: Text
    workload: Text = "chat"
    priority: Text = "balanced"
    gpu: Text | None = None
    max_gpus: Annotated[int, Field(ge=1, le=1024)] = 8


class BudgetForm(ToolForm):
    """Which task or session."""

    task: Text | None = None
    session: Text | None = None
