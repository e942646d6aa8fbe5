"""Compares two kernels, and draws what a page shows."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from forge.app.audit import drawing, histories, rooflines
from forge.app.desk import samples
from forge.app.desk.answers import RANKING
from forge.app.desk.view import View
from forge.app.desk.withheld import without_hidden_of
from forge.app.kernels.answers import find_kernel
from forge.app.plain_events import OfWorkspace
from forge.app.runs.run_comparison import compare_runs
from forge.app.stored.run_documents import of_state
from forge.errors import EnvironmentUnfit, NotFound, UsageError

Data = dict[str, object]
DRAWN_MEASUREMENTS = 1000
"""Number of newest measurements in a drawing of a kernel's history. Chosen; more points overlap in one drawing."""

LISTED_CANDIDATES = 50
"""Number of candidates in the table of a roofline. Chosen; the audit named roofline lists them all."""


def compare_kernels(view: View, a: str, b: str) -> Data:
    """Return what differs between two kernels: sources, gates and times with their intervals."""
    entries = [find_kernel(view.workspace, name) for name in (a, b)]
    before, after = (view.workspace.find_run(str(entry["run_id"])) for entry in entries)
    compared = compare_runs(OfWorkspace(view.workspace), of_state(before), of_state(after))
    return {"a": a, "b": b, **without_hidden_of(view.workspace, [before, after], compared)}


def speedups_picture(view: View) -> str:
    """Return a drawing of the active kernels' speedups, as SVG."""
    bars = drawing.standing_kernels(view.published, wanted={})
    return _drawn(lambda path: drawing.plot_speedups(bars, path), empty=not bars)


def history_picture(view: View, kernel_id: str) -> str:
    """Return a drawing of a kernel's measured times, as SVG."""
    answer = histories.history(OfWorkspace(view.published), kernel=kernel_id, limit=DRAWN_MEASUREMENTS)
    return _drawn(lambda path: drawing.plot_history(answer, path), empty=not answer.rows)


def samples_picture(view: View, kernel_id: str) -> str:
    """Return a drawing of the raw samples of a kernel's benchmark, as SVG; raise NotFound without samples."""
    return _drawn(lambda path: samples.draw(view, kernel_id, path), empty=not samples.samples_us(view, kernel_id))


def roofline_rows(view: View, gpu: str, op: str) -> list[Data]:
    """Return the numbers of that drawing for one operation; none if no ceilings of the processor were measured."""

    def ask() -> Data:
        try:
            answer = rooflines.roofline(OfWorkspace(view.published), gpu=gpu, wanted={"op": op})
        except UsageError:
            return {"rows": []}
        return {"rows": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows[:LISTED_CANDIDATES]]}

    found = view.kept(f"roofline {gpu} {op}", (*RANKING, "DeviceCalibrated"), ask)["rows"]
    assert isinstance(found, list)
    return found


def roofline_picture(view: View, gpu: str) -> str:
    """Return a drawing of every timed candidate of a processor under its ceilings, as SVG."""
    answer = rooflines.roofline(OfWorkspace(view.published), gpu=gpu, wanted={})
    return _drawn(lambda path: drawing.plot_roofline(answer, path), empty=not answer.rows)


def _drawn(draw: Callable[[Path], None], *, empty: bool) -> str:
    """Return the SVG that `draw` writes; raise NotFound if there is nothing to draw."""
    if empty:
        raise NotFound("there is nothing to draw yet: expected a measured kernel")
    with tempfile.TemporaryDirectory(prefix="forge-drawing-") as folder:
        path = Path(folder) / "drawing.svg"
        try:
            draw(path)
        except ImportError as error:
            raise EnvironmentUnfit(
                f"{error}: expected the package that draws", hint="pip install 'tensorpath-forge[audit]'"
            ) from error
        return path.read_text(encoding="utf-8")
