"""Says how many sets of operands take turns in a window on a device, so that no cache still holds one."""

from forge.lab.runner import GPU

ROTATION_BYTES = 128 * 2**20
"""Size of all sets together in bytes, at least. It is more than twice the last-level cache of an H100 or H200 (50
MiB), and more than any in the table (96 MiB)."""
LONG_SETS, LONG_BYTES = 128, 2**30
"""Number and bytes of sets, of which the first that is reached is enough. A window then has much more work than the
start of its graph."""
MOST_SETS, FEWEST_SETS = 512, GPU.sets_at_once
"""Number of calls in one window, at most and at least."""


def rotated_set_count(set_bytes: int) -> int:
    """Return how many sets take turns, so that no cache still holds a set when it comes again."""
    size = max(1, set_bytes)
    long_enough = min(LONG_SETS, LONG_BYTES // size)
    return max(FEWEST_SETS, min(MOST_SETS, max(-(-ROTATION_BYTES // size), long_enough)))
