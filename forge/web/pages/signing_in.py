"""Signs a person in to the pages with a token, and guards forms against pages of other origins."""

import hashlib
import hmac
import secrets

from starlette.requests import Request
from starlette.responses import Response

from forge.app.workspace import now
from forge.errors import RequestRefused

COOKIE = "forge_token"
"""Name of the cookie with the token of a person who signed in."""
FORM_FIELD = "form_token"
"""Name of the hidden field of a form that shows that it was rendered for this person, lately."""
LASTING_S = 3600
"""Shortest time in seconds for which a rendered form can be sent. The longest is twice that. A person may read
long before answering."""
_SECRET = secrets.token_bytes(32)
"""Key of the tokens of forms; another one in each process, so a form of an earlier server is refused."""


def token_in_cookie(request: Request) -> str | None:
    """Return the token of a person who signed in; None without one."""
    return request.cookies.get(COOKIE) or None


def keep_token(response: Response, token: str, *, secure: bool) -> None:
    """Have the browser send the token with requests of this server's own pages alone."""
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")


def form_token(signed_in: str | None) -> str:
    """Return the text of a form's hidden field."""
    return _form_token(signed_in, _hour())


def require_form_token(signed_in: str | None, untrusted: str | None) -> None:
    """Raise RequestRefused unless a form was rendered by this server for this person, within the last hours."""
    expected = [_form_token(signed_in, hour) for hour in (_hour(), _hour() - 1)]
    if not any(hmac.compare_digest(one, untrusted or "") for one in expected):
        raise RequestRefused(
            "this form is of another person, another server, or too old: load the page again, then send it",
            status=403,
        )


def _hour() -> int:
    return int(now().timestamp()) // LASTING_S


def _form_token(signed_in: str | None, hour: int) -> str:
    return hmac.new(_SECRET, f"{hour} {signed_in or ''}".encode(), hashlib.sha256).hexdigest()
