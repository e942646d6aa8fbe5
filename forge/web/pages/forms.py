"""Takes forms: signing in and out, submitting a candidate, asking for work, checking the ledger."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from forge.app.access.tokens import READER, Caller
from forge.app.desk import changes
from forge.app.desk.permits import require_operator
from forge.app.desk.refused_calls import LACKING_RIGHTS
from forge.app.workspace import Workspace
from forge.errors import ForgeError, RequestRefused
from forge.web.answering import desk_of
from forge.web.asked import Submission, Withdrawal, WorkAsked
from forge.web.bodies import of_form, sent_form, text_of
from forge.web.checking import check
from forge.web.pages.rendering import rendered
from forge.web.pages.serving import HTML, around_page, error_page
from forge.web.pages.signing_in import COOKIE, FORM_FIELD, form_token, keep_token, require_form_token, token_in_cookie

Fields = dict[str, str]
Taking = Callable[[Request, Fields, dict[str, bytes]], Awaitable[Response]]
SEE_OTHER = 303
"""HTTP status after a form: the browser loads the next page, and doesn't send the form again."""


def routes() -> list[Route]:
    """Return the addresses that take forms."""
    return [
        Route("/sign-in", show_sign_in, methods=["GET"]),
        Route("/sign-in", _guarded(sign_in), methods=["POST"]),
        Route("/sign-out", _guarded(sign_out), methods=["POST"]),
        Route("/submissions", _guarded(hand_in), methods=["POST"]),
        Route("/runs/{name}/work", _guarded(ask_for_work), methods=["POST"]),
        Route("/runs/{name}/withdrawal", _guarded(withdraw), methods=["POST"]),
        Route("/ledger/check", _guarded(check_ledger), methods=["POST"]),
    ]


def _guarded(take: Taking) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that looks at the form's own token first, and answers errors with a page."""

    async def taking(request: Request) -> Response:
        try:
            fields, files = await sent_form(request)
            require_form_token(token_in_cookie(request), fields.pop(FORM_FIELD, None))
            return await take(request, fields, files)
        except ForgeError as error:
            if isinstance(error, LACKING_RIGHTS):
                desk_of(request).record_refused(error.caller, error)
            return await error_page(request, error)

    return taking


async def show_sign_in(request: Request) -> Response:
    """Show the form that asks for a token; refuse it on a server that only reads."""
    if desk_of(request).read_only:
        return await error_page(
            request, RequestRefused("this server only reads: expected one without --read-only", status=403)
        )
    around = around_page("Sign in", READER, desk=desk_of(request), form=form_token(token_in_cookie(request)))
    page = rendered("sign_in", around).encode()
    return Response(page, media_type=HTML, headers={"Cache-Control": "no-store"})


async def sign_in(request: Request, fields: Fields, _: dict[str, bytes]) -> Response:
    """Keep the entered token in a cookie if this server accepts it."""
    token = fields.get("token", "").strip()
    await _caller(request, token)
    response = RedirectResponse("/", SEE_OTHER)
    keep_token(response, token, secure=request.headers.get("x-forwarded-proto") == "https")
    return response


async def sign_out(_: Request, __: Fields, ___: dict[str, bytes]) -> Response:
    """Delete the cookie that holds the caller's token, and lead to the first page."""
    response = RedirectResponse("/", SEE_OTHER)
    response.delete_cookie(COOKIE, path="/")
    return response


async def hand_in(request: Request, fields: Fields, files: dict[str, bytes]) -> Response:
    """Submit a candidate, and show its run."""
    texts = {name: text_of(name, content) for name, content in files.items()}
    wanted = of_form({**fields, "files": texts}, Submission)
    made = await _changed(
        request,
        lambda workspace, caller: changes.submit(
            workspace, caller, task=wanted.task, untrusted_files=wanted.files, until=wanted.until, key=None
        ),
    )
    return RedirectResponse(f"/runs/{made['run_id']}", SEE_OTHER)


async def ask_for_work(request: Request, fields: Fields, _: dict[str, bytes]) -> Response:
    """Ask workers for a run's phases."""
    name, wanted = request.path_params["name"], of_form(fields, WorkAsked)
    made = await _changed(
        request, lambda workspace, caller: changes.ask_for_work(workspace, caller, name, wanted.until)
    )
    return RedirectResponse(f"/runs/{made['run_id']}", SEE_OTHER)


async def withdraw(request: Request, fields: Fields, _: dict[str, bytes]) -> Response:
    """Withdraw the request for a run's work."""
    name, wanted = request.path_params["name"], of_form(fields, Withdrawal)
    made = await _changed(request, lambda workspace, caller: changes.withdraw(workspace, caller, name, wanted.reason))
    return RedirectResponse(f"/runs/{made['run_id']}", SEE_OTHER)


async def check_ledger(request: Request, _: Fields, __: dict[str, bytes]) -> Response:
    """Check the ledger now, for an operator."""
    require_operator(await _caller(request, token_in_cookie(request)))
    await check(desk_of(request))
    return RedirectResponse("/ledger", SEE_OTHER)


async def _caller(request: Request, token: str | None) -> Caller:
    return await asyncio.wrap_future(desk_of(request).read(lambda view: view.caller(token)))


async def _changed(request: Request, change: Callable[[Workspace, Caller], dict[str, object]]) -> dict[str, object]:
    caller = await _caller(request, token_in_cookie(request))
    return await asyncio.wrap_future(desk_of(request).write(caller, lambda workspace: change(workspace, caller)))
