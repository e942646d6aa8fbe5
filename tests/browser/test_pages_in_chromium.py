"""Real Chromium: a candidate handed in by form and seen live, hostile text, what it refuses to run, contrast."""

import re
import shutil
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from forge.app.workspace import Workspace
from forge.events import HumanDecided
from tests.app.prepared import benchmarked, verified
from tests.cli.asking import HONEST, ask, create_task
from tests.web.serving import Served
from tests.web.test_pages import HOSTILE, addresses

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NARROW = {"width": 360, "height": 740}
AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()
"""Program of axe-core, which knows the rules of WCAG 2.2 that a machine can check, contrast among them."""
VIOLATIONS = """
async () => {
  const found = await axe.run(document);
  return found.violations.map((one) => [one.id, one.nodes.map((node) => node.html.slice(0, 200))]);
}
"""
"""Asks axe-core which rules a page breaks, and where."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None, "make test-web installs Debian's chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Browser, **more: object) -> tuple[BrowserContext, Page, list[str]]:
    """A page of a new browser, and what it complains of: errors of scripts, refusals of the policy, dialogs."""
    context = browser.new_context(**more)  # type: ignore[arg-type]
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("response", lambda got: complaints.append(f"{got.status} {got.url}") if got.status >= 400 else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    return context, page, complaints


def hand_in(page: Page, server: Served) -> str:
    """Sign in, hand the shipped candidate in by form, and return its run."""
    page.goto(f"{server.address}/sign-in")
    page.get_by_label("Token").fill(server.tokens["olga"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    task = server.get("/tasks?limit=1").json()["items"][0]["task_id"]
    page.goto(f"{server.address}/tasks/{task}")
    for name in ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json"):
        page.get_by_label(name, exact=True).set_input_files(HONEST / name)
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url(re.compile(r"/runs/"))
    return page.url.rpartition("/")[2]


def test_a_candidate_is_handed_in_and_seen_live_until_its_kernel(server: Served, browser: Browser) -> None:
    create_task(server.home, "--min-speedup", "1.05")
    context, page, complaints = opened(browser)
    run_id = hand_in(page, server)
    assert "candidate_ready" in page.inner_text("main")
    with Workspace.open(server.home) as workspace:
        verified(workspace, run_id)
    page.get_by_text("verify: accepted").wait_for(timeout=20_000)
    with Workspace.open(server.home) as workspace:
        benchmarked(workspace, run_id)
    assert ask("work", "--once", "--home", server.home).status == 0
    kernel = page.get_by_role("row", name="kernel").get_by_role("link").first
    kernel.wait_for(timeout=20_000)
    kernel.click()
    page.wait_for_url(re.compile(r"/kernels/"))
    assert "How to load it" in page.inner_text("main")
    page.wait_for_load_state("networkidle")
    assert complaints == []
    context.close()


def test_the_same_works_without_a_script(server: Served, browser: Browser) -> None:
    create_task(server.home, "--min-speedup", "1.06")
    context, page, _ = opened(browser, java_script_enabled=False)
    run_id = hand_in(page, server)
    page.get_by_label("Reason").fill("a better one is there")
    page.get_by_role("button", name="Withdraw the request").click()
    page.get_by_role("button", name="Ask workers").wait_for()
    assert server.get(f"/runs/{run_id}", "olga").json()["request"] is None
    context.close()


def test_hostile_text_runs_nothing(server: Served, browser: Browser) -> None:
    with Workspace.open(server.home) as workspace:
        for number, text in enumerate((*HOSTILE, "x" * 15_000)):
            decided = HumanDecided(subject_stream="x:y", subject=text[:8000], choice="x", reason=text[:4000])
            workspace.append((decided,), run_id="x:y", key=f"browser:{number}")
    head = server.get("/health").json()["seq"]
    context, page, complaints = opened(browser)
    for seq in range(head - len(HOSTILE), head + 1):
        page.goto(f"{server.address}/ledger/{seq}")
    page.goto(f"{server.address}/recommend?model=%3Cscript%3Ealert(1)%3C/script%3E")
    assert complaints == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_a_phone_and_can_be_read(server: Served, browser: Browser, scheme: str) -> None:
    context, page, complaints = opened(browser, viewport=NARROW, color_scheme=scheme)
    for path in addresses(server):
        requests: list[str] = []
        page.on("request", lambda asked, into=requests: into.append(asked.url))
        page.goto(f"{server.address}{path}")
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
        page.evaluate(AXE)
        assert page.evaluate(VIOLATIONS) == [], path
        own = [one for one in requests if one.startswith(server.address) and "/api/v1/events" not in one]
        assert len(set(own)) == len(set(requests) - {one for one in requests if "/api/v1/events" in one}), path
        assert len(set(own)) <= 6, (path, own)
    assert complaints == []
    context.close()


def test_a_keyboard_reaches_the_content_first(server: Served, browser: Browser) -> None:
    context, page, _ = opened(browser)
    page.goto(server.address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#content"
    context.close()


def test_the_browser_dies_and_comes_back_to_the_truth(server: Served, browser: Browser) -> None:
    task = server.get("/tasks?limit=1").json()["items"][0]["task_id"]
    context, page, _ = opened(browser)
    page.goto(server.address)
    context.close()
    ask("run", "open", task, "--home", server.home)
    context, page, _ = opened(browser)
    page.goto(server.address)
    newest = server.get("/runs?limit=1").json()["items"][0]["run_id"]
    assert newest in page.inner_text("main")
    context.close()


def test_pictures_for_the_documentation(server: Served, browser: Browser, tmp_path: Path) -> None:
    context, page, _ = opened(browser, viewport={"width": 1100, "height": 800})
    page.goto(server.address)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=tmp_path / "overview.png")
    assert (tmp_path / "overview.png").stat().st_size > 10_000
    context.close()
