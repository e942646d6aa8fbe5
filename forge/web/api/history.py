"""Addresses that answer about the ledger and over the whole history."""

from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from forge.app.audit.answer import Filter
from forge.app.desk import answers as found
from forge.app.desk import history
from forge.app.kernels.lookup_answer import UntrustedSlot
from forge.web import asked as questions
from forge.web import schemas
from forge.web.answering import answered
from forge.web.api import Id, answers, router

part = router()


@part.get("/work", responses=answers(schemas.Page), tags=["work"])
async def requests(request: Request) -> Response:
    """List the requests that no worker has answered, the oldest first."""
    return await answered(request, lambda view, _: found.requests(view))


@part.get("/lookup", responses=answers(schemas.Lookup), tags=["kernels"])
async def lookup(request: Request, asked: Annotated[questions.LookupQuery, Query()]) -> Response:
    """Ask the published registry for a kernel."""
    slot = UntrustedSlot(asked.op, asked.gpu, asked.dtype, asked.shape, asked.language)
    return await answered(
        request, lambda view, _: found.lookup(view, slot, nearest=asked.nearest, deprecated=asked.deprecated)
    )


@part.get("/recommendation", responses=answers(schemas.AnswerForm), tags=["kernels"])
async def recommendation(request: Request, asked: Annotated[questions.RecommendQuery, Query()]) -> Response:
    """Rank deployments of a model, with the kernels that could help; several models are compared."""
    gpus = None if asked.gpu is None else [asked.gpu]
    limits: dict[str, object] = {"max_gpus": asked.max_gpus, "gpus": gpus}
    limits |= {"max_ttft_ms": asked.max_ttft_ms, "max_price_per_hour": asked.max_price_per_hour}
    constraints = {name: value for name, value in limits.items() if value is not None}
    aims = {"workload": asked.workload, "priority": asked.priority, "constraints": constraints}
    return await answered(
        request, lambda view, _: found.recommendation(view, models=asked.model, asked=aims, prices=asked.price)
    )


@part.get("/experiments", responses=answers(schemas.Rows), tags=["history"])
async def experiments(request: Request, asked: Annotated[questions.ExperimentQuery, Query()]) -> Response:
    """Return what was tried and what it showed, failures included, the newest first."""
    return await answered(request, lambda view, _: found.experiments(view, **asked.model_dump()))


@part.get("/lessons", responses=answers(schemas.Page), tags=["history"])
async def lessons(request: Request) -> Response:
    """List lessons, in the order of their proposals."""
    return await answered(request, lambda view, _: found.all_lessons(view))


@part.get("/notes/{op}", responses=answers(schemas.AnswerForm), tags=["history"])
async def notes(request: Request, op: Id, asked: Annotated[questions.NotesQuery, Query()]) -> Response:
    """Return everything that is recorded about an operation."""
    return await answered(request, lambda view, _: found.notes(view, op=op, gpu=asked.gpu))


@part.get("/leaderboard", responses=answers(schemas.Rows), tags=["history"])
async def leaderboard(request: Request, asked: Annotated[questions.BoardQuery, Query()]) -> Response:
    """Return worst, typical and best speedup for each slot."""
    wanted: dict[Filter, str | None] = {"op": asked.op, "gpu": asked.gpu, "dtype": asked.dtype}
    wanted["language"] = asked.language
    return await answered(
        request, lambda view, _: found.leaderboard(view, wanted=wanted, baseline=asked.baseline), slow=True
    )


@part.get("/audits/{name}", responses=answers(schemas.Rows), tags=["history"])
async def audit(request: Request, name: Id, asked: Annotated[questions.AuditQuery, Query()]) -> Response:
    """Answer a named question about the history, as `forge audit` does; free SQL isn't one."""
    given = asked.model_dump(exclude={"limit"}, exclude_none=True)
    return await answered(
        request,
        lambda view, _: found.audit(view, name, given, limit=asked.limit),
        slow=True,
        timeless=name != "stale",
    )


@part.get("/sessions", responses=answers(schemas.Page), tags=["sessions"])
async def sessions(request: Request) -> Response:
    """List the sessions in which programs write candidates, with what is used and left of their budgets."""
    return await answered(request, found.all_sessions, slow=True)


@part.get("/sessions/{session_id}", responses=answers(schemas.AnswerForm), tags=["sessions"])
async def session(request: Request, session_id: Id) -> Response:
    """Return a session, and what its budget went into."""
    return await answered(request, lambda view, caller: found.session(view, caller, session_id))


@part.get("/machines", responses=answers(schemas.Page), tags=["history"])
async def machines(request: Request) -> Response:
    """List the machines that measured, with their newest ceilings."""
    return await answered(request, lambda view, _: found.machines(view))


@part.get("/ledger/events", responses=answers(schemas.Page), tags=["ledger"])
async def events(request: Request, asked: Annotated[questions.EventQuery, Query()]) -> Response:
    """Return events in order, the oldest first."""
    types = tuple(asked.type) or None
    return await answered(
        request, lambda view, caller: history.events(view, caller, after=asked.after, types=types, limit=asked.limit)
    )


@part.get("/ledger/events/{seq}", responses=answers(schemas.EventDocument), tags=["ledger"])
async def event(request: Request, seq: Annotated[int, Path(ge=1, le=10**12)]) -> Response:
    """Return one event by its sequence number."""
    return await answered(request, lambda view, caller: history.event_document(view, caller, seq))


@part.get("/ledger/checkpoint", responses=answers(schemas.CheckpointForm), tags=["ledger"])
async def checkpoint(request: Request) -> Response:
    """Return the newest signed checkpoint, and the key that signs."""
    return await answered(request, lambda view, _: history.checkpoint(view))


@part.get("/ledger/inclusion", responses=answers(schemas.Inclusion), tags=["ledger"])
async def inclusion(request: Request, asked: Annotated[questions.InclusionQuery, Query()]) -> Response:
    """Prove that an event is in the tree of the first `size` events (RFC 6962)."""
    return await answered(request, lambda view, _: history.inclusion(view, **asked.model_dump()))


@part.get("/ledger/consistency", responses=answers(schemas.Consistency), tags=["ledger"])
async def consistency(request: Request, asked: Annotated[questions.ConsistencyQuery, Query()]) -> Response:
    """Prove that the first `size` events extend the first `old_size` (RFC 6962)."""
    return await answered(request, lambda view, _: history.consistency(view, **asked.model_dump()))
