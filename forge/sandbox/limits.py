"""How much of the machine one guest may use; numbers only, bound by `launch` and what it uses."""

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Ceilings for one guest; reaching one is the guest's failure, never the host's."""

    wall_s: float = 300.0
    """Seconds from the start until the whole tree is killed."""
    cpu_s: int = 600
    """Processor seconds of one process (RLIMIT_CPU): a backstop behind `wall_s`."""
    total_cpu_s: float | None = None
    """Processor seconds of the whole tree, those that ended included; None is no limit but `cpu_s`."""
    memory_bytes: int = 8 * GIB
    """Private writable memory of one process (RLIMIT_DATA; not RLIMIT_AS: CUDA reserves address space)."""
    processes: int = 256
    """Processes and threads of the guest together (RLIMIT_NPROC in its own user namespace)."""
    open_files: int = 256
    """Descriptors of one process."""
    file_bytes: int = 1 * GIB
    """The largest file it may write."""
    scratch_bytes: int = 2 * GIB
    """/scratch, /tmp and /dev/shm together; they're one tmpfs."""
    shadow: bool = False
    """Whether a sanitizer reserves address space far beyond its memory: only the whole tree's use is bound then."""
    log_bytes: int = 64 * 1024
    """What is kept of standard output and error: half from the start, half from the end."""

    @property
    def total_memory_bytes(self) -> int:
        """Memory of the whole tree: what one process and a full scratch may take. Many processes get no more."""
        return self.memory_bytes + self.scratch_bytes

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (isinstance(value, bool) or value is None or value > 0):  # written so that NaN is refused
                raise ValueError(f"limit {name} is {value!r}: expected a number above 0")
