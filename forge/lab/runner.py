"""Says what a candidate's calls run on, so that no gate asks for a device or for an interpreter.

A gate reads from the runner how much can be asked there, and what the host can do to the memory of a call.
To add a runner: its constant below, and the case of `runner_of` that chooses it.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Runner:
    """What the calls of a candidate run on."""

    device: Literal["cpu", "cuda"]
    """Device that holds the operands, by torch's name."""
    shares_pages: bool
    """Whether a call works in the host's own pages, so that the host can close them. A device gets copies."""
    serves_in_threads: bool
    """Whether the guest makes a call from another thread if it is asked as by a serving program."""
    launches_plans: bool = False
    """Whether a call can be captured as a launch plan, which trusted guests launch without the candidate's code."""
    leaves_host_idle: bool = False
    """Whether the host's processors mostly wait while calls run, so that guests can run side by side."""
    makes_many_calls: bool = True
    """Whether thousands of small calls take seconds. An interpreter takes minutes."""
    takes_large_shapes: bool = True
    """Whether a call with a few MiB takes seconds. An interpreter takes minutes."""
    reaches_past_2_gib: bool = False
    """Whether operands past 2^31 bytes are asked. On a processor, memory and time don't allow it."""
    keeps_subnormals: bool = True
    """Whether arithmetic keeps subnormal numbers as the target does."""
    keeps_fp8_nan: bool = True
    """Whether a NaN in fp8 stays a NaN when it is widened. Triton's interpreter makes it 480."""
    most_workload_elements: int
    """Number of elements in all operands of one call at a listed workload, at most. Moving more takes too long."""
    most_workload_flops: int
    """Floating-point operations of one call at a listed workload, at most. More take too long."""
    cheap_elements: int = 2**25
    """Elements of all operands up to which a shape inside a domain is never made smaller. Then 65,537 rows of 128
    columns are still asked."""
    most_asked_outside: int = 24
    """Number of questions outside a domain, besides one for each condition, at most. Each may compile a kernel."""
    most_listed: int = 64
    """Number of combinations of sizes that a domain lists, at most; they are drawn at random if there are more. A
    kernel may have a table with an entry for each."""
    corner_rows_range: tuple[int, int] = (64, 300)
    """Range from which the number of rows is drawn where several axes have tails at once. Chosen; more rows cost time
    to draw and to judge."""
    most_corner_elements: int = 2**24
    """Number of elements in all operands of such a shape, at most; free axes are shortened to reach it. Chosen; the
    host draws and judges every element, and an interpreter runs a program for each row of each free axis."""
    least_arena_bytes: int
    """Size of an arena in bytes, at least. It is only address space until it is written."""
    sets_at_once: int
    """Number of sets of operands for which an arena has room."""


PROCESSOR = Runner(
    device="cpu",
    shares_pages=True,
    serves_in_threads=True,
    most_workload_elements=2**25 + 2**16,
    most_workload_flops=2**29,
    least_arena_bytes=768 * 2**20,
    sets_at_once=4,
)
"""Runner on a processor of the host."""
GPU = Runner(
    device="cuda",
    shares_pages=False,
    serves_in_threads=False,
    launches_plans=True,
    leaves_host_idle=True,
    reaches_past_2_gib=True,
    most_workload_elements=2**28,
    most_workload_flops=2**36,
    least_arena_bytes=16 * 2**30,
    sets_at_once=8,
)
"""Runner on a GPU of the host. Its arena has room for operands past 2^31 bytes, if the device can hold them."""
INTERPRETER = Runner(
    device="cpu",
    shares_pages=True,
    serves_in_threads=True,
    makes_many_calls=False,
    takes_large_shapes=False,
    keeps_subnormals=False,
    keeps_fp8_nan=False,
    most_workload_elements=2**15,
    most_workload_flops=2**29,
    cheap_elements=2**18,
    most_asked_outside=12,
    most_listed=8,
    corner_rows_range=(33, 65),
    most_corner_elements=2**20,
    least_arena_bytes=768 * 2**20,
    sets_at_once=4,
)
"""Runner for an interpreter on the host, in place of a GPU. Its calls are slow: fewer and smaller ones are asked."""


def runner_of(device: Literal["cpu", "cuda"], *, interpreted: bool) -> Runner:
    """Return what the calls run on: the interpreter if there is one, else the device itself."""
    if interpreted:
        return INTERPRETER
    return GPU if device == "cuda" else PROCESSOR
