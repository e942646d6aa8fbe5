"""Addresses that change something: candidates are submitted, and work is asked for and withdrawn."""

from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from forge.app.desk import changes
from forge.app.desk.limits import LONGEST_KEY
from forge.web import asked as questions
from forge.web import schemas
from forge.web.answering import changed
from forge.web.api import Id, answers, router
from forge.web.bodies import of_form, parsed, sent_form, text_of

part = router()
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A text of your own: a repeated call with it gives the same run, and submits nothing twice.",
    "schema": {"type": "string", "maxLength": LONGEST_KEY},
}
TOKEN: list[dict[str, list[str]]] = [{"token": []}]
"""Entry of the OpenAPI document for an address that needs a token."""


def _takes(form: type[BaseModel], example: dict[str, Any], **more: Any) -> dict[str, Any]:  # Any: OpenAPI
    """Return what the OpenAPI document says of an address that takes a body."""
    content = {"application/json": {"schema": form.model_json_schema(), "example": example}} | more
    return {"security": TOKEN, "requestBody": {"required": True, "content": content}}


FILES = dict.fromkeys(("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json"), "...")
SENT_AS_FORM = {
    "multipart/form-data": {
        "schema": {
            "type": "object",
            "required": ["task", *FILES],
            "properties": {
                "task": {"type": "string"},
                "until": {"type": "string"},
                **{name: {"type": "string", "contentMediaType": "text/plain"} for name in FILES},
            },
        }
    }
}


@part.post(
    "/submissions",
    status_code=201,
    responses=answers(schemas.HandedIn, status=201),
    openapi_extra=_takes(questions.Submission, {"task": "cpp_rmsnorm_cpu_fp32_...", "files": FILES}, **SENT_AS_FORM)
    | {"parameters": [KEY]},
    tags=["work"],
)
async def submit(request: Request) -> Response:
    """Submit a candidate: a run is opened for it, and its phases are asked for up to `until`.

    It answers at once. A refused candidate is an answer, not an error: `verdict` is `rejected` then.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    key = request.headers.get("idempotency-key")
    if kind == "multipart/form-data":
        fields, files = await sent_form(request)
        texts = {name: text_of(name, content) for name, content in files.items()}
        handed_in = of_form({**fields, "files": texts}, questions.Submission)
    else:
        handed_in = await parsed(request, questions.Submission)
    return await changed(
        request,
        lambda workspace, caller: changes.submit(
            workspace,
            caller,
            task=handed_in.task,
            untrusted_files=handed_in.files,
            until=handed_in.until,
            key=key,
        ),
        status=201,
    )


@part.post(
    "/runs/{run_id}/request",
    responses=answers(schemas.WorkAnswer),
    openapi_extra=_takes(questions.WorkAsked, {"until": "promote"}),
    tags=["work"],
)
async def ask_for_work(request: Request, run_id: Id) -> Response:
    """Ask workers to run a run's phases; a request that stands is answered and not repeated."""
    wanted = await parsed(request, questions.WorkAsked)
    return await changed(
        request, lambda workspace, caller: changes.ask_for_work(workspace, caller, run_id, wanted.until)
    )


@part.post(
    "/runs/{run_id}/withdrawal",
    responses=answers(schemas.WithdrawnForm),
    openapi_extra=_takes(questions.Withdrawal, {"reason": "a better candidate is there"}),
    tags=["work"],
)
async def withdraw(request: Request, run_id: Id) -> Response:
    """Withdraw the request for a run's work; a worker that has begun a phase finishes it."""
    wanted = await parsed(request, questions.Withdrawal)
    return await changed(
        request, lambda workspace, caller: changes.withdraw(workspace, caller, run_id, wanted.reason)
    )
