"""The form of requests: what may be asked, and within which limits. Unknown fields are refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from forge.app.desk.paging import LONGEST_CURSOR, MOST_ITEMS, USUAL_ITEMS
from forge.app.work.requests import LastPhase

Limit = Annotated[int, Field(ge=1, le=MOST_ITEMS, description="Largest number of items.")]
Cursor = Annotated[
    str | None, Field(max_length=LONGEST_CURSOR, description="`next` of the page before; of this ledger only.")
]
Name = Annotated[str | None, Field(max_length=200)]
Wanted = Annotated[str, Field(max_length=200)]


class AskedForm(BaseModel):
    """Base of the fields of a request: unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Paged(AskedForm):
    """Which page of a list."""

    after: Cursor = None
    limit: Limit = USUAL_ITEMS


class TaskQuery(Paged):
    """Which tasks."""

    op: Name = None
    gpu: Name = None
    language: Name = None


class RunQuery(Paged):
    """Which runs."""

    task: Name = None
    state: Name = None


class KernelQuery(Paged):
    """Which kernels."""

    op: Name = None
    gpu: Name = None
    dtype: Name = None
    status: Name = None


class EventQuery(Paged):
    """Which events."""

    type: Annotated[list[str], Field(max_length=20, description="Only these types; may be repeated.")] = []


class LookupQuery(AskedForm):
    """What a kernel is looked up for."""

    op: Wanted
    gpu: Wanted
    dtype: Wanted
    shape: Annotated[str, Field(max_length=500, description="Sizes by axis, as batch=16,hidden_size=4096.")]
    language: Name = None
    nearest: bool = False
    deprecated: bool = False


class RecommendQuery(AskedForm):
    """What a deployment is recommended for."""

    model: Annotated[list[str], Field(min_length=1, max_length=4)]
    workload: Wanted = "chat"
    priority: Wanted = "balanced"
    gpu: Name = None
    max_gpus: Annotated[int, Field(ge=1, le=1024)] = 8
    price: Annotated[list[str], Field(max_length=20, description="Price of one GPU for one hour, as h200=4.")] = []
    max_ttft_ms: Annotated[float | None, Field(gt=0)] = None
    max_price_per_hour: Annotated[float | None, Field(gt=0)] = None


class ExperimentQuery(AskedForm):
    """Which experiments."""

    op: Name = None
    gpu: Name = None
    ended: Name = None
    text: Name = None
    limit: Limit = USUAL_ITEMS


class BoardQuery(AskedForm):
    """Which slots of the leaderboard."""

    op: Name = None
    gpu: Name = None
    dtype: Name = None
    language: Name = None
    baseline: Literal["eager", "compile", "vendor"] | None = None


class AuditQuery(AskedForm):
    """What an audit is asked for; each audit takes some of these."""

    kernel: Name = None
    op: Name = None
    gpu: Name = None
    dtype: Name = None
    author: Name = None
    by: Name = None
    days: Name = None
    limit: Limit = USUAL_ITEMS


class NotesQuery(AskedForm):
    """Which processor."""

    gpu: Name = None


class InclusionQuery(AskedForm):
    """Which event, in which tree."""

    seq: Annotated[int, Field(ge=1, le=10**12)]
    size: Annotated[int | None, Field(ge=1, le=10**12)] = None


class ConsistencyQuery(AskedForm):
    """Which two trees."""

    old_size: Annotated[int, Field(ge=1, le=10**12)]
    size: Annotated[int | None, Field(ge=1, le=10**12)] = None


class StreamQuery(AskedForm):
    """Where a stream of events begins."""

    after: Annotated[int | None, Field(ge=0, le=10**12, description="The last event that the caller has.")] = None


class Submission(AskedForm):
    """A candidate that is submitted."""

    task: Annotated[str, Field(min_length=1, max_length=200, description="The whole id of a task.")]
    files: Annotated[
        dict[str, str], Field(max_length=16, description="Exactly the five files of a candidate, by name.")
    ]
    until: Annotated[
        LastPhase | None, Field(description="The last phase to ask workers for; null asks for none.")
    ] = "promote"


class WorkAsked(AskedForm):
    """A request for work."""

    until: LastPhase = "promote"


class Withdrawal(AskedForm):
    """The reason for withdrawing a request."""

    reason: Annotated[str, Field(min_length=1, max_length=500)]
