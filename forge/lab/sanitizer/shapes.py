"""Where a sanitized candidate is called: calls cost many times the usual, so at few shapes, all of them awkward."""

from collections.abc import Mapping, Sequence

from forge.lab.calls.loaded_candidate import Probe

REDUCED = (1, 3, 16, 17, 33, 257, 1023)
ROWS = (1, 3, 8)
FREE = (1, 17, 65)


def watched_shapes(probe: Probe) -> Sequence[Mapping[str, int]]:
    """Odd widths with few rows, a few row counts, odd sizes of free axes, and the public shape."""
    if probe.operation.own is not None:
        return [*probe.held_out[:2], probe.shape]
    rows, reduced = probe.operation.row_axis, probe.operation.reduced_axis
    few = min(3, probe.shape[rows])
    by_reduced = [{**probe.shape, rows: few, reduced: size} for size in REDUCED]
    by_rows = [{**probe.shape, rows: count, reduced: min(probe.shape[reduced], 1025)} for count in ROWS]
    by_free = [
        {**probe.shape, rows: few, reduced: min(probe.shape[reduced], 33), axis: size}
        for axis in probe.operation.free_axes
        for size in FREE
    ]
    return [*by_reduced, *by_rows, *by_free, probe.shape]
