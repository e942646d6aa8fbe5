"""Answers with pages, their JSON, drawings and the few static files."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import cache

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forge import __version__
from forge.app.access.tokens import READER, Caller
from forge.app.desk import comparing
from forge.app.desk.desk import Desk
from forge.app.desk.view import View
from forge.app.desk.wrong_kind import explained
from forge.errors import ForgeError, LedgerCorrupt, NotFound, TokenRefused
from forge.web.answering import JSON, desk_of, etag_of, kept_of, token_of
from forge.web.pages.contents import PAGES, PageKind, PageQuestion, require_fields
from forge.web.pages.rendering import STATIC, rendered
from forge.web.pages.signing_in import COOKIE, form_token, token_in_cookie
from forge.web.problems import of_error, status_of

HTML, SVG = "text/html; charset=utf-8", "image/svg+xml"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": SVG}
DRAWING_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Policy of a drawing: it is shown as an image, where scripts don't run, and has its styles inside."""
NAVIGATION = (
    ("/", "Overview"), ("/tasks", "Tasks"), ("/leaderboard", "Leaderboard"), ("/compare", "Compare"),
    ("/recommend", "Recommend"), ("/experiments", "Experiments"), ("/sessions", "Sessions"),
    ("/machines", "Machines"), ("/ledger", "Ledger"), ("/help", "Help"),
)  # fmt: skip
Handler = Callable[[Request], Awaitable[Response]]


def routes() -> list[Route]:
    """Return the addresses of pages, of their JSON, of drawings and of static files."""
    found = []
    for page in PAGES:
        json_path = "/index.json" if page.path == "/" else f"{page.path}.json"
        found += [Route(json_path, _answering(page, as_json=True)), Route(page.path, _answering(page, as_json=False))]
    found.append(Route("/static/{name}", static))
    found.append(Route("/drawings/{kind}/{name}.svg", drawing))
    return found


def _answering(page: PageKind, *, as_json: bool) -> Handler:
    async def answering(request: Request) -> Response:
        try:
            require_fields(page, request.query_params)
            return await _page(request, page, as_json=as_json)
        except ForgeError as error:
            return of_error(error) if as_json else await error_page(request, error)

    return answering


async def _page(request: Request, page: PageKind, *, as_json: bool) -> Response:
    desk, kept = desk_of(request), kept_of(request)
    signed_in = token_in_cookie(request)
    token = token_of(request) if as_json and signed_in is None else signed_in
    address, known = f"{request.url.path}?{request.url.query}", request.headers.get("if-none-match")
    form, named = form_token(token), dict(request.path_params)
    query = dict(request.query_params)

    def found(view: View) -> tuple[str, bytes | None]:
        caller = view.caller(token)
        stand = f"{view.stand}-{desk.damage or ''}"
        checks = desk.checks if page.template == "ledger" else 0
        etag = etag_of(f"{stand} {checks} {form}", caller, address)
        if known is not None and etag in known:
            return etag, None
        key = (caller.scope, caller.name, address, form, str(checks))
        had = kept.get(stand, key)
        if had is not None:
            return etag, had[0]
        question = PageQuestion(desk, view, caller, named, query)
        content = explained(view, caller, named.values(), lambda: page.content(question))
        body = orjson.dumps(content) if as_json else _html(page, content, caller, desk=desk, form=form)
        kept.put(stand, key, body, HTML)
        return etag, body

    etag, body = await asyncio.wrap_future(desk.read_slowly(found) if page.slow else desk.read(found))
    headers = {"ETag": etag, "Vary": "Authorization, Cookie"}
    if body is None:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON if as_json else HTML)


def _html(page: PageKind, content: dict[str, object], caller: Caller, *, desk: Desk, form: str) -> bytes:
    around = around_page(page.title, caller, desk=desk, form=form)
    return rendered(page.template, {**around, **content}).encode(errors="replace")


def around_page(title: str, caller: Caller, *, desk: Desk, form: str) -> dict[str, object]:
    """Return the values that every page shows around its content: title, navigation, caller, damage."""
    return {
        "title": title,
        "navigation": NAVIGATION,
        "caller": caller,
        "damage": desk.damage,
        "read_only": desk.read_only,
        "form_token": form,
        "writes": caller.scope != "reader" and desk.damage is None and not desk.read_only,
        "version": __version__,
        "style": f"/static/style.css?v={_version('style.css')}",
        "script": f"/static/live.js?v={_version('live.js')}",
    }


async def error_page(request: Request, error: ForgeError) -> Response:
    """Answer with an error for people; a token that isn't accepted any more is forgotten."""
    around = around_page("Error", READER, desk=desk_of(request), form="")
    if isinstance(error, LedgerCorrupt):
        around["damage"] = error.message
    page = rendered("error", {**around, "error": error, "status": status_of(error)})
    response = Response(page.encode(errors="replace"), status_of(error), media_type=HTML)
    response.headers["Cache-Control"] = "no-store"
    if isinstance(error, TokenRefused):
        response.delete_cookie(COOKIE, path="/")
    return response


@cache
def _version(name: str) -> str:
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]


async def static(request: Request) -> Response:
    """Answer with one of the static files by its name; there is no other folder to reach."""
    name = request.path_params["name"]
    files = {path.name: path for path in STATIC.iterdir()}
    if name not in files or (suffix := files[name].suffix) not in KINDS:
        return await error_page(request, NotFound(f"no file {name[:100]!r} here: expected one that a page names"))
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(files[name].read_bytes(), headers=headers, media_type=KINDS[suffix])


async def drawing(request: Request) -> Response:
    """Answer with a drawing: the speedups of all kernels, a kernel's history, or a processor's roofline.

    Another name is answered with NOT_FOUND.
    """
    kind, name = request.path_params["kind"], request.path_params["name"]
    draw: dict[str, Callable[[View], str]] = {
        "speedups": comparing.speedups_picture,
        "history": lambda view: comparing.history_picture(view, name),
        "samples": lambda view: comparing.samples_picture(view, name),
        "roofline": lambda view: comparing.roofline_picture(view, name),
    }
    desk, kept = desk_of(request), kept_of(request)

    def found(view: View) -> tuple[str, bytes]:
        if kind not in draw:
            raise NotFound(f"no drawing {kind[:100]!r}: expected one of {', '.join(draw)}")
        key, stand = ("drawing", kind, name), f"{view.stand}-{desk.damage or ''}"
        had = kept.get(stand, key)
        body = had[0] if had is not None else draw[kind](view).encode()
        kept.put(stand, key, body, SVG)
        return etag_of(stand, READER, f"{kind} {name}"), body

    try:
        etag, body = await asyncio.wrap_future(desk.read_slowly(found))
    except ForgeError as error:
        return of_error(error)
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"ETag": etag})
    headers = {"ETag": etag, "Content-Security-Policy": DRAWING_POLICY}
    return Response(body, headers=headers, media_type=SVG)
