"""Addresses that answer about tasks, runs, candidates and kernels."""

import asyncio
from typing import Annotated

from fastapi import Path, Query, Request
from starlette.responses import Response

from forge import __version__
from forge.app.desk import answers as history_answers
from forge.app.desk import kernels, runs, tasks
from forge.errors import ForgeError
from forge.web import asked as questions
from forge.web import schemas
from forge.web.answering import Text, answered, desk_of
from forge.web.api import Id, answers, plain, router

File = Annotated[str, Path(min_length=1, max_length=100)]
part = router()


@part.get("/health", responses=answers(schemas.HealthForm), tags=["server"])
async def health(request: Request) -> schemas.HealthForm:
    """Say whether the workspace can be read and written."""
    desk, seq, damage = desk_of(request), None, desk_of(request).damage
    try:
        seq = (await _head(request)) if damage is None else None
    except ForgeError as error:
        damage = error.message
    writable = damage is None and not desk.read_only
    return schemas.HealthForm(ok=damage is None, writable=writable, damage=damage, seq=seq, forge_version=__version__)


async def _head(request: Request) -> int:

    return await asyncio.wrap_future(desk_of(request).read(lambda view: view.head.seq))


@part.get("/state", responses=answers(schemas.StateForm), tags=["server"])
async def state(request: Request) -> Response:
    """Return how much there is of everything, and where the ledger is."""
    return await answered(request, lambda view, _: history_answers.state(view))


@part.get("/tasks", responses=answers(schemas.Page), tags=["tasks"])
async def all_tasks(request: Request, asked: Annotated[questions.TaskQuery, Query()]) -> Response:
    """List tasks, the newest first."""
    return await answered(request, lambda view, _: tasks.all_tasks(view, **asked.model_dump()))


@part.get("/tasks/{task_id}", responses=answers(schemas.TaskForm), tags=["tasks"])
async def task(request: Request, task_id: Id) -> Response:
    """Return a task."""
    return await answered(request, lambda view, _: tasks.task_document(view, task_id))


@part.get("/tasks/{task_id}/brief", responses=answers(schemas.Brief), tags=["tasks"])
async def brief(request: Request, task_id: Id) -> Response:
    """Return the newest brief of a task: the text that an author works from."""
    return await answered(request, lambda view, _: tasks.task_brief(view, task_id))


@part.get("/runs", responses=answers(schemas.Page), tags=["runs"])
async def all_runs(request: Request, asked: Annotated[questions.RunQuery, Query()]) -> Response:
    """List runs, the newest first."""
    return await answered(request, lambda view, caller: runs.all_runs(view, caller, **asked.model_dump()))


@part.get("/runs/{run_id}", responses=answers(schemas.Run), tags=["runs"])
async def run(request: Request, run_id: Id) -> Response:
    """Return a run: its plan, its state, and the answer of each phase."""
    return await answered(request, lambda view, caller: runs.run_document(view, caller, run_id))


@part.get("/runs/{run_id}/counterexample", responses=answers(schemas.CounterexampleForm), tags=["runs"])
async def counterexample(request: Request, run_id: Id) -> Response:
    """Return why a run's candidate was refused, with the input at which it is wrong, if there is one."""
    return await answered(request, lambda view, caller: runs.counterexample(view, caller, run_id))


@part.get("/runs/{run_id}/profiles", responses=answers(schemas.Page), tags=["runs"])
async def profiles(request: Request, run_id: Id) -> Response:
    """List what each profiler saw of a run's candidate."""
    return await answered(request, lambda view, caller: runs.profiles(view, caller, run_id))


@part.get("/candidates/{candidate}", responses=answers(schemas.CandidateDocument), tags=["runs"])
async def candidate(request: Request, candidate: Id) -> Response:
    """Return a candidate by the digest of its files."""
    return await answered(request, lambda view, caller: runs.candidate_document(view, caller, candidate))


@part.get("/candidates/{candidate}/files/{name}", responses=plain(), tags=["runs"])
async def candidate_file(request: Request, candidate: Id, name: File) -> Response:
    """Return the text of one of a candidate's five files."""
    return await answered(request, lambda view, caller: Text(runs.candidate_file(view, caller, candidate, name)))


@part.get("/kernels", responses=answers(schemas.Page), tags=["kernels"])
async def all_kernels(request: Request, asked: Annotated[questions.KernelQuery, Query()]) -> Response:
    """List kernels, the newest first."""
    return await answered(request, lambda view, _: kernels.all_kernels(view, **asked.model_dump()))


@part.get("/kernels/{kernel_id}", responses=answers(schemas.KernelForm), tags=["kernels"])
async def kernel(request: Request, kernel_id: Id) -> Response:
    """Return a kernel's entry in the registry: every number, and the event that recorded it."""
    return await answered(request, lambda view, _: kernels.kernel_document(view, kernel_id))


@part.get("/kernels/{kernel_id}/files/{name}", responses=plain(), tags=["kernels"])
async def kernel_file(request: Request, kernel_id: Id, name: File) -> Response:
    """Return the text of one of a kernel's files, as it was promoted."""
    return await answered(request, lambda view, _: Text(kernels.kernel_file(view, kernel_id, name)))


@part.get("/kernels/{kernel_id}/proof", responses=plain(), tags=["kernels"])
async def kernel_proof(request: Request, kernel_id: Id) -> Response:
    """Return the proof that a kernel's promotion is in the ledger; `forge verify-proof` checks it."""
    return await answered(request, lambda view, _: Text(kernels.kernel_proof(view, kernel_id)))
