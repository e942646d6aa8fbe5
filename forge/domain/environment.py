"""The machine that evidence was gathered on, and the three digests that compare machines."""

from typing import Annotated

from pydantic import Field, StringConstraints

from forge.domain.digest import Digest, Value, digest_of, is_unset
from forge.domain.machine_name import worker_name

NodeName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12,64}$")]
"""Name of a node: hexadecimal digits, so that a published ledger names no machine of a private network."""


class GpuFacts(Value):
    """One GPU model and the settings that change its speed."""

    name: str
    slug: str
    arch: str
    count: Annotated[int, Field(ge=1)]
    memory_bytes: Annotated[int, Field(ge=0)]
    power_limit_w: float | None
    ecc: bool | None
    mig: bool | None
    uuid: str | None


class Environment(Value):
    """Everything about a machine that could explain a different result."""

    cpu_model: str
    cpu_cores: Annotated[int, Field(ge=1)]
    cpu_features: tuple[str, ...]
    """Instruction-set extensions of the processor that compiled code may use."""
    system: str
    machine: str
    kernel: str
    glibc: str | None
    python: str
    torch: str | None
    triton: str | None
    compiler: str | None
    gpu: GpuFacts | None
    driver: str | None
    cuda: str | None
    clock_policy: str
    """Setting of the processor's clock, as the system reports it."""
    forge_version: str
    forge_commit: str | None
    host_sha256: Digest
    """Digest of the host's machine id. It tells two machines apart without naming them."""
    node: NodeName | None = Field(default=None, exclude_if=is_unset)
    """Name that the head gives the worker that answered, whatever the worker says of itself. It is Ray's id of the
    node, or a digest of the ssh host. None: the head itself."""

    @property
    def worker(self) -> str:
        """Beginning of the name of the node that answered, or of the machine's digest if that is the head."""
        return worker_name(self.node, self.host_sha256)

    @property
    def env_sha256(self) -> Digest:
        """Digest of all fields."""
        return digest_of(self)

    @property
    def perf_key(self) -> Digest:
        """Digest of the processor and of the software that compiles and runs code.

        Timings may be compared only if their keys are equal.
        """
        fields = {"cpu_model", "cpu_cores", "machine", "torch", "triton", "compiler", "driver", "cuda"}
        facts: dict[str, object] = self.model_dump(mode="json", include=fields)
        facts["gpu"] = self.gpu.slug if self.gpu else None
        return digest_of(facts)

    @property
    def abi_key(self) -> Digest:
        """Digest of what a built artifact depends on. Machines with equal keys can load each other's artifacts."""
        return digest_of(self._abi())

    def abi_differences(self, other: "Environment") -> tuple[str, ...]:
        """Return the facts that stop `other` from loading an artifact built here; empty if the ABI keys are equal."""
        theirs = other._abi()
        return tuple(name for name, fact in self._abi().items() if theirs[name] != fact)

    def _abi(self) -> dict[str, object]:
        fields = {"machine", "system", "glibc", "torch", "cuda", "cpu_features"}
        facts: dict[str, object] = self.model_dump(mode="json", include=fields)
        facts["arch"] = self.gpu.arch if self.gpu else None
        facts["python"] = ".".join(self.python.split(".")[:2])
        return facts
