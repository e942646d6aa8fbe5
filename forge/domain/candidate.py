"""What an author hands in: five files, of which one describes the others."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from forge.domain.digest import Digest, Value, digest_of
from forge.domain.experiment import AXES, LAYER_NAMES, Axis, Layer, layer_of
from forge.domain.task import LanguageName, Name
from forge.domain.tensors import ClaimableLayout

REQUIRED_FILES = ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json")
FILE_LIMIT_BYTES = 512 * 1024
Line = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""One line of text from outside, without control characters: it is shown on terminals."""
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
CompilerFlag = Annotated[
    str,
    StringConstraints(
        pattern=r"^(-O[0-3]|-Ofast|-ffast-math|-fno-math-errno|-funroll-loops|-fopenmp"
        r"|-march=native|-mtune=native|-mprefer-vector-width=(128|256|512)|-std=c\+\+(17|20))$"
    ),
]
CudaFlag = Annotated[
    str,
    StringConstraints(
        pattern=r"^(-O[0-3]|--?use_fast_math|--(fmad|ftz|prec-div|prec-sqrt)=(true|false)|-std=c\+\+(17|20)"
        r"|--maxrregcount=(1[6-9]|[2-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])|-lineinfo|--extra-device-vectorization"
        r"|--expt-relaxed-constexpr|--(expt-)?extended-lambda)$"
    ),
]


class CandidateFile(Value):
    """One submitted file, named by its content."""

    path: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    sha256: Digest
    size_bytes: Annotated[int, Field(ge=0)]


class MetadataClaim(Value):
    """A number that the author says to have measured; it is recorded and later compared, never believed."""

    metric: Literal["speedup", "candidate_us", "baseline_us"]
    value: Annotated[float, Field(gt=0)]
    baseline: Line = "eager"


class CppBuild(Value):
    """Plain C++ to be compiled before the kernel is loaded, in seconds instead of a torch extension's minute."""

    source: Identifier = "CPP_SOURCE"
    """The module-level string constant in kernel.py that holds the C++ text with `extern "C"` functions."""
    flags: tuple[CompilerFlag, ...] = ("-O3", "-march=native", "-fopenmp", "-std=c++17")


class CudaBuild(Value):
    """CUDA C++ to be compiled by nvcc before the kernel is loaded; the architecture is the target's."""

    source: Identifier = "CUDA_SOURCE"
    """The module-level string constant in kernel.py: `__global__` kernels and `extern "C"` launchers."""
    flags: tuple[CudaFlag, ...] = ("-O3", "-std=c++17")


class Metadata(Value):
    """The content of metadata.json; the published schema is generated from this class."""

    name: Line
    op: Name
    language: LanguageName
    entry_point: Identifier | None = None
    """The function in kernel.py with the operation's signature; by default the operation's name."""
    kernel_file: Literal["kernel.py"] = "kernel.py"
    author: Line | None = None
    hypothesis: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """Why this should be faster."""
    layer: Layer | None = None
    """L1 structure, L2 synchronisation, L3 instruction, L4 resource; follows from the axis."""
    axis: Axis | None = None
    """The one thing changed against the parent."""
    parents: Annotated[tuple[Digest, ...], Field(max_length=16)] = ()
    claims: Annotated[tuple[MetadataClaim, ...], Field(max_length=20)] = ()
    tolerance: dict[str, float] = Field(default_factory=dict)
    """Informative; the task's own bound decides."""
    cpp: CppBuild | None = None
    cuda: CudaBuild | None = None
    layouts: Annotated[tuple[ClaimableLayout, ...], Field(max_length=3)] = ()
    """Layouts of inputs that the kernel takes beyond its contract; what is claimed is asked, and must hold."""

    @field_validator("axis", mode="before")
    @classmethod
    def _one_axis(cls, untrusted_axis: object, info: ValidationInfo) -> object:
        """One axis of the closed list, and of the layer that was declared."""
        if untrusted_axis is None:
            return None
        wanted = layer_of(untrusted_axis) if isinstance(untrusted_axis, str) else None
        if wanted is None:
            listed = ", ".join(axis for axes in AXES.values() for axis in axes)
            raise ValueError(f"expected one axis, since one figure shows one change: {listed}")
        declared = info.data.get("layer", wanted)
        if declared not in (None, wanted):
            raise ValueError(f"axis {untrusted_axis!r} is of layer {wanted} ({LAYER_NAMES[wanted]}), not {declared}")
        return untrusted_axis

    @property
    def layer_changed(self) -> Layer | None:
        """The layer that was declared, or the one that the axis belongs to."""
        return self.layer if self.axis is None else layer_of(self.axis)

    @property
    def build(self) -> CppBuild | CudaBuild | None:
        """How the text in kernel.py is compiled; None where importing kernel.py is all of the build."""
        return self.cuda if self.language == "cuda" else self.cpp


class Candidate(Value):
    """An accepted submission, byte for byte: what every later event refers to."""

    files: tuple[CandidateFile, ...]
    language: LanguageName
    entry_point: Identifier

    @property
    def sha256(self) -> Digest:
        """The candidate's name: the digest of its files' names and contents and its entry point."""
        return digest_of(self)
