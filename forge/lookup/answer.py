"""What a lookup answers with: the bytes to load, the evidence for them, and why each other kernel was passed over."""

from forge.lookup.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge.lookup.declared import DeclaredDomain

KERNEL_FILE = "kernel.py"
"""Name of the file with the kernel's entry point."""
BUILT_LANGUAGES = frozenset({"cpp", "cuda"})
"""Languages whose promoted source comes with a built library, which fits one kind of machine."""


class Kernel(Frozen):
    """The bytes to load and where to enter them."""

    __slots__ = (
        "abi_key", "artifact_sha256", "domain", "dtype", "entry_point", "gpu", "kernel_id", "language", "op",
        "registry_root", "sha256", "shape", "status", "superseded_by",
    )  # fmt: skip

    kernel_id: str
    op: str
    gpu: str
    dtype: str
    language: str
    status: str
    """active; deprecated only where the policy allowed it."""
    superseded_by: str | None
    sha256: str
    """SHA-256 of kernel.py."""
    entry_point: str
    artifact_sha256: str | None
    """SHA-256 of the listing of what was made from it: built objects, a launch plan."""
    abi_key: str
    """Digest of the machine that a built object can be loaded on."""
    registry_root: str
    domain: "DeclaredDomain | None"
    """Shapes, layouts and addresses at which it promises an answer; None: all of its operation's contract."""

    shape: "Mapping[str, int] | None"
    """Shape of its task, at which its launch plan was captured; None if a snapshot doesn't tell."""

    def __init__(self, fields: "Mapping[str, object]") -> None:
        self._fill(**{name: fields[name] for name in Kernel.__slots__})

    @property
    def folder(self) -> str:
        """The folder of its files, relative to the registry."""
        return f"kernels/{self.kernel_id}"

    @property
    def source_path(self) -> str:
        """The path of kernel.py."""
        return f"{self.registry_root}/{self.folder}/{KERNEL_FILE}"

    def read_source(self) -> bytes:
        """Return kernel.py as it was promoted; raise BlobCorrupt if the file differs."""
        from forge.lookup.published import read_published

        return read_published(self.registry_root, f"{self.folder}/{KERNEL_FILE}", sha256=self.sha256)


class Evidence(Frozen):
    """What was measured at `shape`, the measured shape nearest to the asked one, and which events say so."""

    __slots__ = ("_measured", "distance")

    shape: "Mapping[str, int]"
    distance: float
    """Distance from the asked shape, in octaves summed over the axes."""
    median_ns: float
    baseline: str
    baseline_median_ns: float
    speedup: float
    low: float
    high: float
    """The speedup's two-sided 95 % interval."""
    method: str
    """`launch_plan`: events on the GPU around replays. `host_slope`: the host's clock, weaker evidence."""
    measured_at: str
    """When the benchmark was recorded, in UTC."""
    samples_sha256: str
    env_sha256: str
    perf_key: str
    abi_key: str
    verified_seq: int
    benchmark_seq: int
    promoted_seq: int
    regime: str
    """`cold`: no operand is in the last-level cache. `resident`: all were written just before the call."""
    state: str
    """`replicated`: a second measurement that counts has held. `provisional`: none has."""
    replicated_seq: int | None
    """The event of that second measurement."""

    _measured: "Mapping[str, object]"

    def __init__(self, measured: "Mapping[str, object]", distance: float) -> None:
        """Take all the fields but the distance from `measured`, which the caller must not change."""
        object.__setattr__(self, "_measured", measured)
        object.__setattr__(self, "distance", distance)

    def __getattr__(self, name: str) -> object:
        if name in MEASURED:
            return self._measured[name]
        raise AttributeError(f"Evidence has no {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *MEASURED})

    def __repr__(self) -> str:
        return f"Evidence({', '.join(f'{name}={value!r}' for name, value in self.document().items())})"

    def document(self) -> dict[str, object]:
        """Return all fields as plain data that the caller may change."""
        return {**self._measured, "shape": dict(self.shape), "distance": self.distance}

    def at(self, distance: float) -> "Evidence":
        """Return the same evidence for an asked shape at this distance."""
        return Evidence(self._measured, distance)


MEASURED = (
    "abi_key", "baseline", "baseline_median_ns", "benchmark_seq", "env_sha256", "high", "low", "measured_at",
    "median_ns", "method", "perf_key", "promoted_seq", "regime", "replicated_seq", "samples_sha256", "shape",
    "speedup", "state", "verified_seq",
)  # fmt: skip
"""The fields of evidence that don't depend on what was asked."""
