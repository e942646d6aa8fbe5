"""The raw samples of a kernel's benchmark, as a table and a drawing. Its run is decided, so they may be told."""

import statistics
from pathlib import Path

from forge.app.desk.view import View
from forge.app.kernels.answers import find_kernel
from forge.errors import BlobCorrupt, NotFound
from forge.pipeline.samples import parse_samples

Data = dict[str, object]
HARNESS = "harness"
"""Name of the side that is a call's own path: it is no kernel, so it isn't shown."""
NS_PER_US = 1000.0
"""Number of nanoseconds in a microsecond."""


def samples_us(view: View, kernel_id: str) -> dict[str, list[list[float]]]:
    """Return the times of each side in microseconds, a list for each process pair; raise NotFound without samples."""
    timed = find_kernel(view.workspace, kernel_id)["benchmark"]
    digest = timed["workloads"][0]["samples_sha256"]  # type: ignore[index]  # as the registry writes it
    try:
        found = parse_samples(view.workspace.blobs.get(digest)).samples
    except BlobCorrupt as error:
        raise NotFound(f"the samples of {kernel_id!r} can't be read: {error.message}", hint=error.hint) from error
    return {
        side: [[one / NS_PER_US for one in rounds] for rounds in found.per_call_ns(side)]
        for side in found.sides
        if side != HARNESS
    }


def samples_table(view: View, kernel_id: str) -> list[Data]:
    """Return number, least, median and largest time for each side and process pair; empty without samples."""
    try:
        found = samples_us(view, kernel_id)
    except NotFound:
        return []
    return [
        {
            "side": side,
            "pair": pair,
            "n": len(rounds),
            "low_us": min(rounds),
            "median_us": statistics.median(rounds),
            "high_us": max(rounds),
        }
        for side, pairs in found.items()
        for pair, rounds in enumerate(pairs, 1)
    ]


def draw(view: View, kernel_id: str, path: Path) -> None:
    """Draw the samples of a kernel's benchmark."""
    from forge.pictures.samples import draw_samples

    draw_samples(samples_us(view, kernel_id), path, title=f"{kernel_id}: every measured time")
