"""Defines how much of the machine one guest may use; `launch` and the modules it uses enforce these numbers."""

from dataclasses import dataclass

from forge.sandbox.allowance import Allowance

MIB = 1 << 20
"""Number of bytes in a mebibyte."""
GIB = 1 << 30
"""Number of bytes in a gibibyte."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one guest; reaching one is the guest's failure, never the host's."""

    wall_s: float = 300.0
    """Seconds by the wall clock, while the host waits for it, until the whole tree is killed. A busy machine may be
    the reason, so this end is no verdict."""
    cpu_s: int = 600
    """Processor seconds of one process (RLIMIT_CPU), in case nothing else ends it. Twice `wall_s`, so that one busy
    thread meets the wall clock first."""
    thread_cpu_s: float | None = None
    """Processor seconds of one thread; None if only `cpu_s` limits them."""
    reply_cpu_s: float | None = None
    """Processor seconds of one thread until it answers one command; None if only the others limit them."""
    total_cpu_s: float | None = None
    """Processor seconds of the whole tree, with the processes that have ended; None if only `cpu_s` limits them."""
    still_s: float | None = None
    """Seconds after which a process tree that takes next to no processor time counts as idle. None if only
    `wall_s` ends it."""
    shared: Allowance | None = None
    """What this guest may take together with the other guests of its candidate; None if they share no limit."""
    waits_for_device: bool = False
    """Whether a guest without work for a processor may wait for a GPU that others use."""
    memory_bytes: int = 8 * GIB
    """Private writable memory of one process in bytes (RLIMIT_DATA; not RLIMIT_AS, since CUDA reserves address
    space)."""
    runtime_bytes: int | None = None
    """Private memory that the interpreter's libraries map for themselves, in bytes. RLIMIT_DATA allows it on top of
    `memory_bytes`: most of it is never used, and it grows with the number of threads."""
    processes: int = 256
    """Number of processes and threads of the guest together (RLIMIT_NPROC in its own user namespace). Chosen; a
    larger number lets a guest take more of the host's scheduler and process ids."""
    open_files: int = 256
    """Number of descriptors of one process. Chosen; a larger number lets a guest hold more of the kernel's memory,
    which only a cgroup counts."""
    file_bytes: int = 1 * GIB
    """Size of the largest file that the guest may write, in bytes. Chosen: half of `scratch_bytes`, so that no single
    file fills the scratch."""
    scratch_bytes: int = 2 * GIB
    """Size of /scratch, /tmp and /dev/shm together in bytes; they are one tmpfs."""
    shadow: bool = False
    """Whether a sanitizer reserves much more address space than it has memory; only the memory that the whole process
    tree uses is limited then."""
    log_bytes: int = 64 * 1024
    """Size of the kept standard output and error in bytes: half from the start, half from the end."""

    @property
    def data_bytes(self) -> int:
        """RLIMIT_DATA in bytes: what the guest may take, and what its runtime maps besides."""
        return self.memory_bytes + (self.runtime_bytes or 0)

    @property
    def total_memory_bytes(self) -> int:
        """Memory of the whole tree in bytes: that of one process and of a full scratch.

        Many processes get no more.
        """
        return self.memory_bytes + self.scratch_bytes

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            fits = isinstance(value, bool | Allowance) or value is None or value > 0  # in this form NaN is refused
            if not fits:
                raise ValueError(f"limit {name} is {value!r}: expected a number above 0")
