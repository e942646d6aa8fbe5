"""A candidate: the five files that an author submits, of which metadata.json describes the others."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, WithJsonSchema, field_validator

from forge.domain.axes import AXES, LAYER_NAMES, Axis, Layer, layer_of
from forge.domain.digest import Digest, Value, digest_of
from forge.domain.kernel_domain import KernelDomain
from forge.domain.task import LanguageName, Name
from forge.domain.tensors import ClaimableLayout

FILE_LIMIT_BYTES = 512 * 1024
"""Largest size of one submitted file. It bounds what is stored, and what is sent to a guest."""
Line = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
"""One line of untrusted text without control characters, because it is shown on terminals."""
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


def _flags(pattern: str, listed: str) -> tuple[AfterValidator, WithJsonSchema]:
    """Return the rule for a flag: its text fits the pattern, and an error lists what does."""

    def known(flag: str) -> str:
        if re.fullmatch(pattern, flag) is None:
            raise ValueError(f"expected one of {listed}")
        return flag

    return AfterValidator(known), WithJsonSchema({"type": "string", "pattern": f"^({pattern})$"})


CompilerFlag = Annotated[
    str,
    *_flags(
        r"-O[0-3]|-Ofast|-ffast-math|-fno-math-errno|-funroll-loops|-fopenmp"
        r"|-march=native|-mtune=native|-mprefer-vector-width=(128|256|512)|-std=c\+\+(17|20)",
        "-O0 to -O3, -Ofast, -ffast-math, -fno-math-errno, -funroll-loops, -fopenmp, -march=native (it brings "
        "all vector widths of this processor), -mtune=native, -mprefer-vector-width=128, 256 or 512, -std=c++17 or "
        "20",
    ),
]
CudaFlag = Annotated[
    str,
    *_flags(
        r"-O[0-3]|--?use_fast_math|--(fmad|ftz|prec-div|prec-sqrt)=(true|false)|-std=c\+\+(17|20)"
        r"|--maxrregcount=(1[6-9]|[2-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])|-lineinfo|--extra-device-vectorization"
        r"|--expt-relaxed-constexpr|--(expt-)?extended-lambda",
        "-O0 to -O3, --use_fast_math, --fmad, --ftz, --prec-div or --prec-sqrt with =true or =false, -std=c++17 or "
        "20, --maxrregcount=16 to 255, -lineinfo, --extra-device-vectorization, --expt-relaxed-constexpr, "
        "--extended-lambda",
    ),
]


class CandidateFile(Value):
    """One submitted file, with the digest of its content."""

    path: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    sha256: Digest
    size_bytes: Annotated[int, Field(ge=0)]


class MetadataClaim(Value):
    """A number that the author claims to have measured. Forge records it and compares it; it decides nothing."""

    metric: Literal["speedup", "candidate_us", "baseline_us"]
    value: Annotated[float, Field(gt=0)]
    baseline: Line = "eager"


class CppBuild(Value):
    """Plain C++ that Forge compiles before it loads the kernel, in seconds; a torch extension takes a minute."""

    source: Identifier = "CPP_SOURCE"
    """Name of the module-level string constant in kernel.py that holds the C++ text with `extern "C"` functions."""
    flags: tuple[CompilerFlag, ...] = ("-O3", "-march=native", "-fopenmp", "-std=c++17")


class CudaBuild(Value):
    """CUDA C++ that nvcc compiles for the target's architecture before Forge loads the kernel."""

    source: Identifier = "CUDA_SOURCE"
    """Name of the module-level string constant in kernel.py with `__global__` kernels and `extern "C"` launchers."""
    flags: tuple[CudaFlag, ...] = ("-O3", "-std=c++17")


BUILDS: dict[LanguageName, type[CppBuild | CudaBuild]] = {"cuda": CudaBuild, "cpp": CppBuild}
"""Language -> form of its build, in metadata.json under the language's name. A torch extension in CUDA has sources in
C++ as well, so CUDA stands first."""


class Metadata(Value):
    """The content of metadata.json. The published schema is generated from this class."""

    name: Line
    op: Name
    language: LanguageName
    entry_point: Identifier | None = None
    """Name of the function in kernel.py with the operation's signature. Default: the operation's name."""
    kernel_file: Literal["kernel.py"] = "kernel.py"
    author: Line | None = None
    hypothesis: Annotated[str, StringConstraints(max_length=2000)] | None = None
    """Reason why this candidate should be faster."""
    layer: Layer | None = None
    """Layer of the change: L1 structure, L2 synchronisation, L3 instruction, L4 resource. The axis implies it."""
    axis: Axis | None = None
    """Axis of the change: the one thing that differs from the parent."""
    parents: Annotated[tuple[Digest, ...], Field(max_length=16)] = ()
    claims: Annotated[tuple[MetadataClaim, ...], Field(max_length=20)] = ()
    tolerance: dict[str, float] = Field(default_factory=dict)
    """Tolerance that the author expects, for information only. The task's own bound decides."""
    cpp: CppBuild | None = None
    cuda: CudaBuild | None = None
    layouts: Annotated[tuple[ClaimableLayout, ...], Field(max_length=3)] = ()
    """Further input layouts that the kernel accepts. Verification checks every layout that is claimed."""
    domain: KernelDomain | None = None
    """Shapes, layouts and addresses at which the kernel promises an answer. Outside it the kernel may raise an
    exception. None: all that the operation's contract demands."""

    @field_validator("axis", mode="before")
    @classmethod
    def _one_axis(cls, untrusted_axis: object, info: ValidationInfo) -> object:
        """Return the axis; raise ValueError unless it is one of the closed list and of the declared layer."""
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
        """The declared layer, or else the layer of the axis."""
        return self.layer if self.axis is None else layer_of(self.axis)

    @property
    def build(self) -> CppBuild | CudaBuild | None:
        """How the text in kernel.py is compiled. None: importing kernel.py is the whole build."""
        return self.cuda if self.language == "cuda" else self.cpp

    def with_build(self) -> "Metadata":
        """Return the same with the language's build by its defaults, if the language has one."""
        build = BUILDS.get(self.language)
        return self if build is None else self.model_copy(update={self.language: build()})


class Candidate(Value):
    """An accepted submission, byte for byte. Every later event refers to it."""

    files: tuple[CandidateFile, ...]
    language: LanguageName
    entry_point: Identifier

    @property
    def sha256(self) -> Digest:
        """The candidate's name: the digest of its files' names and contents, its language and its entry point."""
        return digest_of(self)
