"""Progress of long phases on stderr: the step, its place among all steps, the elapsed time and an estimate.

On a terminal one line changes; elsewhere each step is a line. `--quiet` leaves progress out, `-v` prints each step
with the time that it took.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forge.app.machine.terminal import Stopwatch
from forge.cli.output import say, terminal_width, visible

if TYPE_CHECKING:
    from forge.app.phases.durations import Durations
    from forge.app.work.decided_runs import Pace

Report = Callable[[str], None]
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Frames of the sign that shows that the command is at work."""
FRAME_S = 0.2
"""Seconds between two frames. Chosen: five frames a second look like motion, and cost little to draw."""
MINUTE_S = 60
"""Number of seconds in a minute."""
HINT_S = 20
"""Seconds of one step after which its hint is shown. Chosen: most steps take less on a busy machine."""
LATE_S = 5
"""Number of seconds past the estimated time from which a phase is said to take longer than before. Less may be
chance."""


_quiet, _verbose = False, False


def be_quiet(quiet: bool) -> bool:
    """Let the phases of this command report nothing, or report again; return the argument."""
    global _quiet  # noqa: PLW0603 (one command a process; each sets it anew)
    _quiet = quiet
    return quiet


def be_verbose(verbose: bool) -> bool:
    """Let the phases of this command report each step with its time, or as usual; return the argument."""
    global _verbose  # noqa: PLW0603 (one command a process; each sets it anew)
    _verbose = verbose
    return verbose


@contextmanager
def reporting(
    phase: str,
    steps: Sequence[str] = (),
    watch: Stopwatch | None = None,
    earlier: "Durations | None" = None,
    *,
    hint: str = "",
) -> Iterator[Report]:
    """Show the progress of a long phase.

    `steps` are the known names of the steps, in order. A step among them is shown with its number. `earlier` has the
    times of earlier phases, and is told of each step. `hint` is shown on a terminal once a step takes long.
    """
    watch = watch or Stopwatch()
    if _quiet:
        shown: Report = lambda _step: None  # noqa: E731 (a report that shows nothing)
        yield _noting(earlier, shown)
    elif _verbose:
        with _steps(phase, steps, watch, earlier) as shown:
            yield _noting(earlier, shown)
    elif not sys.stderr.isatty():
        shown = lambda step: say(f"{phase}: {described(step, steps)} ({time_text(watch, earlier)})")  # noqa: E731
        yield _noting(earlier, shown)
    else:
        with _line(phase, steps, watch, earlier, hint) as shown:
            yield _noting(earlier, shown)


def tell_pace(pace: "Pace") -> None:
    """Say how many runs of a pipeline are decided, how many a minute, and how long the rest takes at this rate."""
    if _quiet:
        return
    told = f"pipeline: {pace.decided} of {pace.total} decided, {pace.per_minute:.1f} a minute"
    left = f", about {elapsed_text(pace.left_s)} left" if pace.left_s else ""
    say(f"{told} ({elapsed_text(pace.elapsed_s)}{left})")


def _noting(earlier: "Durations | None", shown: Report) -> Report:
    """Return a report that also tells `earlier` which step begins."""

    def report(step: str) -> None:
        if earlier is not None:
            earlier.begin(step)
        shown(step)

    return report


def described(step: str, steps: Sequence[str]) -> str:
    """Return the step with its number among all."""
    return f"{step}, {steps.index(step) + 1} of {len(steps)}" if step in steps else step


def time_text(watch: Stopwatch, earlier: "Durations | None") -> str:
    """Return the elapsed time, and how much longer it takes by earlier phases: 12 s, about 40 s left."""
    elapsed, left_s = elapsed_text(watch.seconds()), earlier.left_s() if earlier is not None else None
    if left_s is None:
        return elapsed
    if left_s >= 1:
        return f"{elapsed}, about {elapsed_text(left_s)} left"
    return f"{elapsed}, about done" if left_s > -LATE_S else f"{elapsed}, longer than before"


def elapsed_text(seconds: float) -> str:
    """Return a time as people read it: 12 s, 3 min 5 s."""
    whole = int(seconds)
    return f"{whole} s" if whole < MINUTE_S else f"{whole // MINUTE_S} min {whole % MINUTE_S} s"


@contextmanager
def _steps(phase: str, steps: Sequence[str], watch: Stopwatch, earlier: "Durations | None") -> Iterator[Report]:
    """Print a line when a step begins, and the time that the step before it took."""
    current, began_s = "", 0.0

    def end() -> None:
        if current:
            say(f"{phase}: {current} took {watch.seconds() - began_s:.1f} s")

    def report(step: str) -> None:
        nonlocal current, began_s
        end()
        say(f"{phase}: {described(step, steps)} ({time_text(watch, earlier)})")
        current, began_s = step, watch.seconds()

    yield report
    end()


@contextmanager
def _line(
    phase: str, steps: Sequence[str], watch: Stopwatch, earlier: "Durations | None", hint: str
) -> Iterator[Report]:
    """Redraw one line until the block ends, then remove it."""
    current, began_s, ended = [""], [0.0], threading.Event()

    def draw() -> None:
        frame = 0
        while not ended.wait(FRAME_S):
            told = ": ".join(part for part in (phase, visible(described(current[0], steps))) if part)
            sign = FRAMES[frame % len(FRAMES)]
            late = f"; {hint}" if hint and watch.seconds() - began_s[0] >= HINT_S else ""
            line = f"{sign} {told} ({time_text(watch, earlier)}){late}"
            # a line that wraps can't be redrawn: each frame would leave one behind
            sys.stderr.write(f"\r\x1b[2K{line[: terminal_width() - 1]}")
            sys.stderr.flush()
            frame += 1

    def report(step: str) -> None:
        current[0], began_s[0] = step, watch.seconds()

    drawing = threading.Thread(target=draw, daemon=True)
    drawing.start()
    try:
        yield report
    finally:
        ended.set()
        drawing.join()
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
