"""Progress of long phases on stderr: the step, its place among all steps, and the elapsed time."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from forge.app.terminal import Stopwatch
from forge.cli.output import say, visible

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Frames of the sign that shows that the command is at work."""
FRAME_S = 0.2
"""Seconds between two frames."""
MINUTE_S = 60
_quiet = False


def be_quiet(quiet: bool) -> bool:
    """Let the phases of this command report nothing, or report again; return the argument."""
    global _quiet  # noqa: PLW0603 (one command a process; each sets it anew)
    _quiet = quiet
    return quiet


@contextmanager
def reporting(phase: str, steps: Sequence[str] = ()) -> Iterator[Callable[[str], None]]:
    """Show the progress of a long phase: one changing line on a terminal, otherwise a line for each step.

    `steps` are the names of the steps that come one after another, as far as they are known: a step among them is
    shown with its number.
    """
    watch = Stopwatch()
    if _quiet:
        yield lambda _step: None
    elif not sys.stderr.isatty():
        yield lambda step: say(f"{phase}: {described(step, steps)} ({elapsed_text(watch.seconds())})")
    else:
        with _line(phase, steps, watch) as report:
            yield report


def described(step: str, steps: Sequence[str]) -> str:
    """Return the step with its number among all."""
    return f"{step}, {steps.index(step) + 1} of {len(steps)}" if step in steps else step


def elapsed_text(seconds: float) -> str:
    """Return a time as people read it: 12 s, 3 min 5 s."""
    whole = int(seconds)
    return f"{whole} s" if whole < MINUTE_S else f"{whole // MINUTE_S} min {whole % MINUTE_S} s"


@contextmanager
def _line(phase: str, steps: Sequence[str], watch: Stopwatch) -> Iterator[Callable[[str], None]]:
    """Redraw one line until the block ends, then remove it."""
    current, ended = [""], threading.Event()

    def draw() -> None:
        frame = 0
        while not ended.wait(FRAME_S):
            told = ": ".join(part for part in (phase, visible(described(current[0], steps))) if part)
            sys.stderr.write(f"\r\x1b[2K{FRAMES[frame % len(FRAMES)]} {told} ({elapsed_text(watch.seconds())})")
            sys.stderr.flush()
            frame += 1

    def report(step: str) -> None:
        current[0] = step

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield report
    finally:
        ended.set()
        drawing.join()
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
