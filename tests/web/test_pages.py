"""The pages: each renders with the content that its JSON has, hostile text stays text, and forms are guarded."""

import html
import http.client
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from forge.app.desk.desk import Desk
from forge.app.workspace import Workspace
from forge.errors import RequestRefused
from forge.events import HumanDecided
from forge.web.pages import signing_in
from forge.web.pages.rendering import environment, rendered, visible
from tests.app.test_tokens import granted
from tests.cli.asking import HONEST, ask, copied, create_task, history
from tests.ledger.making import edit_as_owner
from tests.web.conftest import undecided
from tests.web.serving import Served, served
from tests.web.test_writing import refused_calls

FILES = {path.name: path.read_text() for path in sorted(HONEST.iterdir()) if path.is_file()}
HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "'><b>", "</pre><h1>",
    "</title><script>1</script>", "{{ 1234*4321 }}", "{% raw %}", "${7*7}", "#{7*7}", "<%= 7*7 %>", "{{ config }}",
    "\u202egnp.exe", "\u2066left\u2069", "zero\u200bwidth", "\ufeffbom", "soft\u00adhyphen", "line\u2028feed",
    "javascript:alert(1)", "data:text/html,<script>1</script>", "&lt;b&gt;", "&#60;script&#62;", "<!-- x -->",
    "<![CDATA[x]]>", "<iframe src=//evil.example>", "<base href=//evil.example>", "<meta http-equiv=refresh>",
    "<link rel=stylesheet href=//evil.example>", "<style>*{display:none}</style>", "<form action=//evil.example>",
    "<a href=javascript:1>x</a>", "a" * 400, "<math><mi xlink:href=javascript:1>", "<details open ontoggle=1>",
    "\\u003cscript\\u003e", "%3Cscript%3E", "<template><script>1</script></template>", "`<script>`", "]]>",
    "\u2067\u202d",
)  # fmt: skip
ACTIVE = {"script", "iframe", "object", "embed", "base", "svg", "style", "template", "math"}


class Seen(HTMLParser):
    """The tags of a page, its attributes, and which elements are still open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]


def page(server: Served, path: str, holder: str | None = None) -> httpx.Response:
    cookies = {} if holder is None else {"Cookie": f"forge_token={server.tokens[holder]}"}
    with server.client(None, **cookies) as client:
        return client.get(path)


def addresses(server: Served) -> list[str]:
    """The address of one page of each kind."""
    runs = server.get("/runs").json()["items"]
    kernel = server.get("/kernels").json()["items"][-1]
    refused = next(one for one in runs if one["state"] == "rejected")
    return [
        *(
            "/",
            "/tasks",
            "/leaderboard",
            "/compare",
            "/recommend",
            "/experiments",
            "/sessions",
            "/machines",
            "/ledger",
        ),
        *(
            "/help",
            "/ledger/3",
            f"/tasks/{runs[0]['task_id']}",
            f"/runs/{kernel['run_id']}",
            f"/runs/{refused['run_id']}",
        ),
        *(f"/candidates/{kernel['candidate']}", f"/kernels/{kernel['kernel_id']}", "/recommend?model=llama3.1-8b"),
        f"/compare?a={kernel['kernel_id']}&b={kernel['kernel_id']}",
    ]


def test_every_page_renders_and_has_its_content_as_json(server: Served) -> None:
    for path in addresses(server):
        shown = page(server, path)
        assert shown.status_code == 200, (path, shown.text)
        assert shown.headers["content-type"].startswith("text/html")
        assert len(shown.content) <= 200_000
        address, _, query = path.partition("?")
        twin = "/index.json" if address == "/" else f"{address}.json"
        assert page(server, f"{twin}?{query}" if query else twin).headers["content-type"] == "application/json"


def test_a_page_can_be_used_with_a_keyboard_and_a_screen_reader(server: Served) -> None:
    for path in addresses(server):
        text = page(server, path).text
        seen = Seen(text)
        named = [tag for tag, _ in seen.tags]
        assert seen.tags[0] == ("html", {"lang": "en"}), path
        assert [named.count(one) for one in ("h1", "main", "header", "nav", "footer", "title")] == [1] * 6, path
        assert len(seen.ids) == len(set(seen.ids)), path
        assert all(attributes.get("alt") for tag, attributes in seen.tags if tag == "img"), path
        assert all("href" in attributes for tag, attributes in seen.tags if tag == "a"), path
        for tag, attributes in seen.tags:
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (path, tag)
        scripts = [attributes for tag, attributes in seen.tags if tag == "script"]
        assert all((one.get("src") or "").startswith("/static/live.js") for one in scripts)
        assert "<script>" not in text
        fields = [a for tag, a in seen.tags if tag in ("input", "select") and a.get("type") != "hidden"]
        assert text.count("<label") == len(fields), path
        assert (
            sum(attributes.get("src", "").startswith("/") for tag, attributes in seen.tags if tag == "img") + 3 <= 6
        )


def test_the_drawings_are_those_of_the_recorded_speed(server: Served) -> None:
    (kernel,) = server.get("/kernels").json()["items"]
    drawing = page(server, f"/drawings/history/{kernel['kernel_id']}.svg")
    assert drawing.headers["content-type"] == "image/svg+xml"
    assert drawing.text.lstrip().startswith("<?xml")
    assert "<script" not in drawing.text
    assert page(server, "/drawings/nothing/x.svg").status_code == 404
    samples = page(server, f"/drawings/samples/{kernel['kernel_id']}.svg")
    assert samples.headers["content-type"] == "image/svg+xml"
    assert "<script" not in samples.text
    assert page(server, "/drawings/samples/nothing.svg").status_code == 404
    told = page(server, f"/kernels/{kernel['kernel_id']}.json").json()["samples"]
    assert {one["side"] for one in told} == {"candidate", "eager", "control"}
    assert [one["pair"] for one in told if one["side"] == "candidate"] == [1, 2, 3]
    assert {one["median_us"] for one in told if one["side"] == "candidate"} == {50.0}
    assert "Samples of each process pair" in page(server, f"/kernels/{kernel['kernel_id']}").text
    assert page(server, "/static/style.css").status_code == 200
    for path in ("/static/../serving.py", "/static/..%2fserving.py", "/static/%2e%2e%2fserving.py"):
        assert page(server, path).status_code == 404


def test_hostile_text_in_every_place_that_others_fill_stays_text(server: Served) -> None:
    create_task(server.home, "--constraint", f"note={HOSTILE[0]}")
    task = server.get("/tasks?limit=1").json()["items"][0]["task_id"]
    for number, text in enumerate(HOSTILE[:3]):
        hostile = FILES | {"kernel.py": FILES["kernel.py"] + "".join(f"\n# {one}" for one in HOSTILE)}
        hostile["metadata.json"] = FILES["metadata.json"].replace(
            "forge examples", html.unescape(text).replace('"', "'")
        )
        hostile["bench.py"] = FILES["bench.py"] + f"\n# {number}"
        made = server.post("/submissions", "ada", {"task": task, "files": hostile, "until": "verify"})
        assert made.json()["verdict"] == "accepted", made.text
        server.post(f"/runs/{made.json()['run_id']}/withdrawal", "ada", {"reason": text})
    with Workspace.open(server.home) as workspace:
        for number, text in enumerate(HOSTILE):
            decided = HumanDecided(subject_stream="x:y", subject=text, choice=text, reason=text)
            workspace.append((decided,), run_id="x:y", key=f"hostile:{number}")
    head = server.get("/health").json()["seq"]
    paths = [f"/ledger/{head - n}" for n in range(len(HOSTILE))]
    paths += [
        f"/candidates/{made.json()['candidate']}",
        f"/runs/{made.json()['run_id']}",
        f"/tasks/{task}",
        "/",
        "/tasks",
    ]
    paths.append("/ledger")
    for path in paths:
        text = page(server, path, "ada").text
        tags = {tag for tag, _ in Seen(text).tags}
        assert tags & ACTIVE <= {"script"}, path
        assert not re.search(r"<script(?! type=\"module\" src=\"/static/live)", text), path
        assert not set(text) & set("\u202e\u2066\u2067\u202d\u200b\ufeff\u00ad\u2028"), path
        assert "evil.example>" not in text, path
        assert "5332114" not in text, path


def test_text_that_is_sent_back_stays_text(server: Served) -> None:
    connection = http.client.HTTPConnection(server.address.rpartition("/")[2])
    for text in HOSTILE:
        given = quote(text, safe="")
        for path in (
            f"/recommend?model={given}",
            f"/experiments?text={given}",
            f"/tasks?op={given}",
            f"/runs/{given}",
        ):
            connection.request("GET", path)
            answer = connection.getresponse()
            found = Seen(answer.read().decode())
            assert answer.status < 500, path
            assert {tag for tag, _ in found.tags} & ACTIVE == set(), path
            assert not [a for _, a in found.tags if any(name.startswith("on") for name in a)], path
    connection.close()


def test_templates_escape_whatever_they_are_given() -> None:
    assert environment().autoescape is True
    for text in HOSTILE:
        body = (
            environment()
            .from_string("<p title='{{ text }}'>{{ text }}</p><pre>{{ text | whole }}</pre>")
            .render(text=text)
        )
        assert [tag for tag, _ in Seen(body).tags] == ["p", "pre"], text
        assert visible(text) in html.unescape(body)
    assert visible("a\u202eb\x1b[31m\u200b") == "a\\u{202e}b\\u{1b}[31m\\u{200b}"
    long = rendered("error", {**_around(), "error": _Error("x" * 1_000_000), "status": 400})
    assert len(long) < 50_000


class _Error:
    def __init__(self, message: str) -> None:
        self.message, self.code, self.hint = message, "USAGE", None


def _around() -> dict[str, object]:
    from forge.app.access.tokens import READER
    from forge.web.pages.serving import around_page

    desk = Desk(Path())
    desk.close()
    return around_page("Error", READER, desk=desk, form="")


@contextmanager
def signed_in(server: Served, holder: str) -> Iterator[httpx.Client]:
    """A browser in which a person has signed in by the form."""
    with server.client() as client:
        token = _form_token(client.get("/sign-in").text)
        answer = client.post("/sign-in", data={"token": server.tokens[holder], "form_token": token})
        assert answer.status_code == 303, answer.text
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        yield client


def _form_token(text: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', text)
    assert found is not None
    return found[1]


def test_a_candidate_is_handed_in_by_form_without_a_script(server: Served) -> None:
    task = server.get("/tasks").json()["items"][-1]["task_id"]
    assert 'name="kernel.py"' not in page(server, f"/tasks/{task}").text
    with signed_in(server, "eve") as client:
        shown = client.get(f"/tasks/{task}").text
        fields = {"task": task, "until": "verify", "form_token": _form_token(shown)}
        files = {name: (name, text.encode()) for name, text in FILES.items()}
        sent = client.post("/submissions", data=fields, files=files)
        assert sent.status_code == 303, sent.text
        run = client.get(sent.headers["location"])
        assert "candidate_ready" in run.text
        withdrawn = client.post(
            f"{sent.headers['location']}/withdrawal", data={"reason": "no", "form_token": _form_token(run.text)}
        )
        assert withdrawn.status_code == 303
        assert client.post("/sign-out", data={"form_token": _form_token(run.text)}).status_code == 303


def test_a_form_without_its_token_or_with_another_persons_changes_nothing(server: Served) -> None:
    task = server.get("/tasks").json()["items"][0]["task_id"]
    before = len(history(server.home))
    files = {name: (name, text.encode()) for name, text in FILES.items()}
    with signed_in(server, "eve") as eve, signed_in(server, "ada") as ada:
        of_ada = _form_token(ada.get(f"/tasks/{task}").text)
        for token in ("", "0" * 64, of_ada):
            fields = {"task": task, "until": "verify", "form_token": token}
            assert eve.post("/submissions", data=fields, files=files).status_code == 403
            assert (
                eve.post(
                    "/submissions", data={**fields, "form_token": of_ada}, headers={"Origin": "http://x"}
                ).status_code
                == 403
            )
        assert len(history(server.home)) == before
        own = _form_token(eve.get(f"/tasks/{task}").text)
        assert eve.post("/ledger/check", data={"form_token": own}).status_code == 403, "an author checks nothing"
    (recorded,) = refused_calls(server.home, after=before, count=1)
    assert (recorded["actor"], recorded["payload"]["code"]) == ("agent:eve", "ACTOR_FORBIDDEN")


def test_a_damaged_ledger_is_said_on_every_page_and_turns_forms_off(server: Served, tmp_path: Path) -> None:
    import shutil

    home = Path(shutil.copytree(server.home, tmp_path / "home"))
    token = granted(home, "olaf", scope="operator")["token"]
    edit_as_owner(home / "kernel_registry.db", "UPDATE event SET actor = 'cli:mallory' WHERE seq = 4")
    with served(home, {"olaf": token}, "--work", "0") as damaged:
        assert _eventually(lambda: damaged.get("/health").json()["ok"] is False)
        shown = page(damaged, "/help", "olaf").text
        assert 'role="alert">The ledger failed its check' in shown
        refused = damaged.post("/submissions", "olaf", {"task": "x", "files": FILES})
        assert refused.status_code == 503
    assert ask("ledger", "verify", "--home", home).status == 1


def _eventually(holds: "object") -> bool:
    import time

    assert callable(holds)
    for _ in range(2400):
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_what_is_in_an_undecided_run_is_shown_to_its_author_alone(server: Served) -> None:
    create_task(server.home, "--min-speedup", "1.9")
    run_id = undecided(server.home, "agent:eve")
    assert "numerics" not in page(server, f"/runs/{run_id}").text
    assert "numerics" not in page(server, f"/runs/{run_id}", "ada").text
    assert "numerics" in page(server, f"/runs/{run_id}", "eve").text
    candidate = server.get(f"/runs/{run_id}").json()["candidate"]
    assert page(server, f"/candidates/{candidate}").status_code == 404
    assert f"/candidates/{candidate}" not in page(server, f"/runs/{run_id}").text
    assert f"/candidates/{candidate}" in page(server, f"/runs/{run_id}", "eve").text


def test_a_server_that_only_reads_serves_no_form(filled_workspace: Path, tmp_path: Path) -> None:
    home = copied(filled_workspace, tmp_path / "home")
    token = granted(home, "olga", scope="operator")["token"]
    with served(home, {"olga": token}, "--read-only") as reading:
        for path in addresses(reading):
            assert 'method="post"' not in page(reading, path, "olga").text, path
            assert 'href="/sign-in"' not in page(reading, path).text, path
        form = page(reading, "/sign-in")
        assert (form.status_code, 'method="post"' in form.text) == (403, False)


def test_a_form_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = signing_in._hour()
    given = signing_in.form_token("ada")
    for later, accepted in ((0, True), (1, True), (2, False), (-1, False)):
        monkeypatch.setattr(signing_in, "_hour", lambda at=hour + later: at)
        with nullcontext() if accepted else pytest.raises(RequestRefused, match="too old"):
            signing_in.require_form_token("ada", given)


def test_a_revoked_token_in_a_cookie_is_forgotten(server: Served) -> None:
    answer = page(server, "/", "rita")
    assert answer.status_code == 401
    assert 'forge_token=""' in answer.headers["set-cookie"] or "Max-Age=0" in answer.headers["set-cookie"]


@pytest.mark.parametrize("name", ["live.js"])
def test_the_only_script_is_short(name: str) -> None:
    from forge.web.pages.rendering import STATIC

    assert len((STATIC / name).read_text().splitlines()) <= 150
