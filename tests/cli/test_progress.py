"""Progress names the step, its place and the time on stderr; --quiet says nothing of it."""

import os
import pty
import re
import subprocess
import sys

import pytest

from forge.app.machine.terminal import Stopwatch
from forge.cli.progress import be_quiet, be_verbose, described, elapsed_text, reporting
from tests.app.prepared import verified_run
from tests.cli.asking import ask

SCRIPT = """
from forge.cli.progress import reporting
with reporting("verify", ["sources", "sizes"]) as progress:
    for step in ("size\\x1b[2J", "sizes"):
        progress(step)
        input()
"""
"""Program that begins a step, and the next one at each line of its input."""
MOST_FRAMES = 300
"""Frames of one step within which it must stand on the terminal: a minute, however busy the machine is."""


class Watch(Stopwatch):
    """Shows what the test sets."""

    now_s = 0.0

    def seconds(self) -> float:
        return self.now_s


def test_a_line_in_a_pipe_has_the_step_its_number_and_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    be_quiet(False)
    watch = Watch()
    with reporting("verify", ["sources", "sizes"], watch) as progress:
        progress("sizes")
        watch.now_s = 7.9
        progress("shrink")
    assert capsys.readouterr().err == "verify: sizes, 2 of 2 (0 s)\nverify: shrink (7 s)\n"


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    be_quiet(True)
    try:
        with reporting("verify") as progress:
            progress("sizes")
    finally:
        be_quiet(False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "0 s"), (59.9, "59 s"), (185, "3 min 5 s")])
def test_a_time_is_what_people_read(seconds: float, text: str) -> None:
    assert elapsed_text(seconds) == text


def test_an_unknown_step_has_no_number() -> None:
    assert described("shrink", ["sources"]) == "shrink"


def on_a_terminal(script: str, *awaited: bytes) -> bytes:
    """All that a program writes to a terminal; it gets a line of input after each of the texts was shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stderr=theirs) as started:
        os.close(theirs)
        assert started.stdin is not None
        shown = b""
        for text in awaited:
            frames = shown.count(b"\r")
            while text not in shown:
                assert shown.count(b"\r") - frames < MOST_FRAMES, shown[-200:]
                shown += os.read(ours, 4096)
            started.stdin.write(b"\n")
            started.stdin.flush()
        shown += b"".join(iter(lambda: _read(ours), b""))
        assert started.wait() == 0
    os.close(ours)
    return shown


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


def test_a_step_that_takes_long_shows_its_hint_on_a_terminal() -> None:
    begin = "import forge.cli.progress as shown\nshown.HINT_S = 0.3\n"
    hinted = begin + SCRIPT.replace('"sizes"])', '"sizes"], hint="use --limit-s 10")')
    shown = on_a_terminal(hinted, b"size", b"; use --limit-s 10")
    assert re.search(rb"sizes, 2 of 2 \(\d+ s\); use --limit-s 10", shown)


def test_a_terminal_sees_one_line_that_is_removed_at_the_end() -> None:
    text = on_a_terminal(SCRIPT, b"size", b"verify: sizes, 2 of 2 (").decode()
    assert "\n" not in text
    assert "\x1b[2J" not in text
    assert text.endswith("\r\x1b[2K")


def test_a_step_longer_than_the_terminal_stays_on_one_line() -> None:
    narrow = "import os\nos.environ['COLUMNS'] = '24'\n" + SCRIPT.replace('"sizes")', '"sizes")[:1] + ("x" * 90,)')
    narrow = narrow.replace('["sources", "sizes"]', "[]")
    text = on_a_terminal(narrow, b"size", b"verify: xxx").decode()
    frames = text.split("\r\x1b[2K")
    assert any("xxx" in frame for frame in frames)
    assert max(map(len, frames)) == 23


def test_an_estimate_takes_no_other_form_of_measuring(home) -> None:
    run_id = verified_run(home)
    for other in (("--attempts", "2"), ("--replicate",)):
        refused = ask("bench", run_id, "--quick", *other, "--home", home)
        assert (refused.status, "--quick is an estimate" in refused.error) == (2, True)


def test_only_a_speed_far_below_the_needed_one_is_called_hopeless() -> None:
    from forge.cli.estimate import hopeless

    def found(ratios: list[float], control: list[float]) -> bool:
        return hopeless({"control": control, "against": [{"ratios": ratios}], "minimum_speedup": 1.1})

    assert found([0.46, 0.52], [1.02, 0.97])
    assert not found([0.46, 0.52], [1.02, 0.4])
    assert not found([1.05, 1.0], [1.0, 0.9])


class Earlier:
    """Earlier phases that took five seconds from every step on."""

    def __init__(self, left_s: float | None) -> None:
        self.found, self.steps = left_s, list[str]()

    def begin(self, step: str) -> None:
        self.steps.append(step)

    def left_s(self) -> float | None:
        return self.found


@pytest.mark.parametrize(
    ("left_s", "text"),
    [
        (None, "(0 s)"),
        (43.9, "(0 s, about 43 s left)"),
        (125.0, "(0 s, about 2 min 5 s left)"),
        (-1.0, "(0 s, about done)"),
        (-60.0, "(0 s, longer than before)"),
    ],
)
def test_the_estimate_stands_beside_the_elapsed_time(
    left_s: float | None, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = Earlier(left_s)
    with reporting("bench", (), Watch(), earlier) as progress:  # type: ignore[arg-type]  # a test's
        progress("baselines")
    assert capsys.readouterr().err == f"bench: baselines {text}\n"
    assert earlier.steps == ["baselines"]


def test_a_quiet_phase_is_remembered_too(capsys: pytest.CaptureFixture[str]) -> None:
    earlier = Earlier(3.0)
    be_quiet(True)
    try:
        with reporting("bench", earlier=earlier) as progress:  # type: ignore[arg-type]  # a test's
            progress("baselines")
    finally:
        be_quiet(False)
    assert (earlier.steps, capsys.readouterr().err) == (["baselines"], "")


def test_verbose_prints_what_each_step_took(capsys: pytest.CaptureFixture[str]) -> None:
    watch = Watch()
    be_verbose(True)
    try:
        with reporting("verify", ["sources", "build"], watch) as progress:
            progress("sources")
            watch.now_s = 3.5
            progress("build")
            watch.now_s = 75.25
    finally:
        be_verbose(False)
    assert capsys.readouterr().err.splitlines() == [
        "verify: sources, 1 of 2 (0 s)",
        "verify: sources took 3.5 s",
        "verify: build, 2 of 2 (3 s)",
        "verify: build took 71.8 s",
    ]
