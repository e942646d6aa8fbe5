"""Fills the directory that a guest sees: a copy of `forge/guest`, the language's guest module, the candidate's files.

A guest runs only files of this directory. It is bound read-only, so nothing comes back through it.
"""

import copy
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from forge.domain.device import Device
from forge.domain.evidence import Isolation
from forge.languages import Language
from forge.sandbox.allowance import Allowance
from forge.sandbox.folders import HeldFolder
from forge.sandbox.guest_files import package_files
from forge.sandbox.launch import Bind, Confinement, Guest, masked_paths, runtime_binds, start
from forge.sandbox.limits import Limits
from forge.sandbox.zygote import Preparation, Zygote, prepared

STAGE = "/stage"
"""Folder of the stage inside a guest."""
INTERPRETS = "TRITON_INTERPRET"
"""Environment variable that puts Triton's interpreter in the place of its compiler."""
HARNESS_MODULES = ("decimal", "numpy.random", "resource", "tracemalloc")
"""Modules that torch doesn't import and that the guest's harness imports at its start, in 9 ms. A process that guests
are forked from imports them once."""
GPU_NODES = tuple(sorted(node for node in Path("/dev").glob("nvidia*") if node.is_char_device()))
"""Device files that a CUDA process opens; a guest for the CPU gets none of them."""
RUNTIME_BYTES = 1 << 30
"""Private memory in bytes of an interpreter with torch, before a candidate's first line. It holds a CUDA build's
data, and an arena with its pad of `MALLOC_TOP_PAD_`."""
RUNTIME_BYTES_PER_THREAD = 104 << 20
"""Private memory in bytes that one thread may map ahead for itself. It is an arena of 64 MiB, a buffer of OpenBLAS of
32 MiB and a stack of 8 MiB."""
FP32_IN_FP32 = {"NVIDIA_TF32_OVERRIDE": "0"}
"""Environment in which NVIDIA's libraries compute fp32 in fp32. By default torch's convolutions round their operands
to TF32. A reference, its baselines and a candidate that calls them would then be outside the bound of fp32."""
_ONE_GPU = re.compile(r"nvidia[0-9]+")
"""Pattern of the device file of one NVIDIA GPU."""
SERVE, BUILD, DESCRIBE, PARTS = "serve.py", "build.py", "describe.py", "parts.py"
OWN_TESTS, OWN_BENCHMARK, MODEL = "own_tests.py", "own_benchmark.py", "model.py"
SCRIPTS = {
    SERVE: ("guest.__main__", "main"),
    BUILD: ("guest.build", "main"),
    DESCRIBE: ("guest.describe", "main"),
    PARTS: ("guest.parts", "main"),
    OWN_TESTS: ("guest.own", "run_tests"),
    OWN_BENCHMARK: ("guest.own", "run_benchmark"),
    MODEL: ("guest.model", "main"),
}
"""Scripts that can be started on a stage: a module of the guest, and its function."""
_ENTRY = """import sys
sys.path.insert(0, __file__.rpartition("/")[0])
from {module} import {function}
{function}()
"""


@dataclass(frozen=True, kw_only=True)
class Program:
    """The content of a stage, and how its guests are started."""

    language: Language
    files: Mapping[str, bytes]
    """The candidate's files and the built ones, by plain name."""
    environment: Mapping[str, str] = field(default_factory=dict)
    device: Literal["cpu", "cuda"] = "cpu"
    """Device on which the operands of a call lie."""
    gpu: Device | None = None
    """The only GPU that the guest sees; None if it sees all."""
    wrapper: tuple[str, ...] = ()
    """Program with its options that starts the interpreter and watches it."""
    warm: bool = False
    """Whether guests may be forked from one process that has imported the language's modules. Such guests all share
    one address space layout, while fresh processes have different ones. So guests that are timed on a CPU get a fresh
    process for each process pair."""
    modules: tuple[str, ...] = ()
    """Further modules that this process imports."""
    rare_modules: tuple[str, ...] = ()
    """Modules that take seconds to import and that few programs need. A fork of this process imports them, and guests
    are forked from that; guests that are timed on a processor import them themselves."""
    zygote_threads: int | None = None
    """Number of threads with which this process was started, for all guests that serve. Each guest sets its own
    number before it loads a candidate. Torch keeps to it in every thread. OpenMP code that a candidate brings keeps
    to it in the first one alone. If others call it, such guests need a process with their own number: None."""
    trusted: bool = False
    """Whether the guest times itself and holds no candidate's host code: launchers of plans, and a GPU's
    baselines."""
    allowance: Allowance | None = None
    """What all guests of the candidate may take together; None for programs that aren't a candidate's."""
    binds: tuple[Bind, ...] = ()
    """Further binds, only for guests without a candidate: a folder for compiled baselines, or the place of a tool."""


def nodes_of(gpu: Device | None) -> tuple[Path, ...]:
    """Return the device files that a guest with this GPU opens: its own, and those that all GPUs share."""
    if gpu is None or Path(gpu.node) not in GPU_NODES:
        return GPU_NODES
    return tuple(node for node in GPU_NODES if str(node) == gpu.node or not _ONE_GPU.fullmatch(node.name))


class Stage:
    """A program on disk: create it, start processes on it, remove it."""

    def __init__(self, program: Program, isolation: Isolation) -> None:
        self._program = program
        self.isolation = isolation
        self._zygote: Zygote | None = None
        self._held = HeldFolder("forge-stage-"), HeldFolder("forge-scratch-")
        self._directory, self._scratch = (folder.path for folder in self._held)
        self._fill()

    def _fill(self) -> None:
        package = package_files(self._program.language.guest_file, f"{STAGE}/guest")
        files = {f"guest/{name}": content for name, content in package.items()}
        files |= {script: _ENTRY.format(module=of, function=name).encode() for script, (of, name) in SCRIPTS.items()}
        files |= {f"candidate/{name}": content for name, content in self._program.files.items()}
        root = str(self._directory)
        for folder in (root, *(f"{root}/{name}" for name in ("guest", "guest/__pycache__", "candidate"))):
            os.makedirs(folder, exist_ok=True)
            os.chmod(folder, 0o755)  # noqa: S103 (the guest may be another user)
        for name, content in files.items():
            with open(f"{root}/{name}", "xb") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(content)

    @property
    def device(self) -> str:
        """Torch's name of the device on which the operands of a call lie."""
        return self._program.device

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter makes the calls, so that nothing that guests say can be promoted."""
        return self._program.environment.get(INTERPRETS) == "1"

    @property
    def walled(self) -> bool:
        """Whether guests have a file system of their own."""
        return self.isolation.level != "none"

    @property
    def stands_still(self) -> bool:
        """Whether guests are stopped between exchanges.

        Guests under a tool aren't, since it may lose them; trusted guests aren't.
        """
        return not (self._program.wrapper or self._program.trusted)

    @property
    def root(self) -> str:
        """Path of the stage for the guest."""
        return STAGE if self.walled else str(self._directory)

    @property
    def candidate_directory(self) -> str:
        """Path of the candidate's files for the guest."""
        return f"{self.root}/candidate"

    @property
    def scratch_directory(self) -> str:
        """Path at which the guest may write."""
        return "/scratch" if self.walled else str(self._scratch)

    def bounded(self, limits: Limits) -> Limits:
        """Return the limits with what the guest may take together with others of its candidate."""
        return replace(limits, shared=self._program.allowance)

    def prepare(self, threads: int) -> Zygote | None:
        """Start one process that imports the language's modules for all guests.

        Return None if guests are started without one.
        """
        if not (self._program.warm and self._forks):
            return None
        return prepared(replace(self._preparation(threads), rare_modules=self._program.rare_modules))

    def _zygote_for(self, script: str, threads: int) -> Zygote | None:
        shared = self._program.zygote_threads if script == SERVE else None
        return self._zygote or self.prepare(threads if shared is None else shared)

    def fresh_zygote(self, threads: int) -> Zygote | None:
        """Start a new process that imports the language's modules; the caller closes it.

        Return None if forks aren't possible.
        """
        return Zygote(self._preparation(threads)) if self._forks else None

    def forked_from(self, zygote: Zygote | None) -> "Stage":
        """Return this stage with guests forked from that process; only the original stage is removed."""
        forking = copy.copy(self)
        forking._zygote = zygote
        return forking

    @property
    def _forks(self) -> bool:
        return self.isolation.level == "namespaces"

    def _preparation(self, threads: int) -> Preparation:
        modules = (*self._program.language.modules, *HARNESS_MODULES, *self._program.modules)
        return Preparation.of(modules, self._environment(threads))

    def start(self, script: str, *, descriptors: tuple[int, ...], limits: Limits, threads: int) -> Guest:
        """Start one of the stage's scripts in a process of its own. Raise EnvironmentUnfit."""
        confinement = Confinement(
            argv=(*self._program.wrapper, sys.executable, "-I", f"{self.root}/{script}"),
            binds=(*runtime_binds(), Bind(self._directory, STAGE), *self._program.binds),
            masked=masked_paths(),
            environment=self._environment(threads),
            descriptors=descriptors,
            limits=replace(
                self.bounded(limits), runtime_bytes=RUNTIME_BYTES + limits.processes * RUNTIME_BYTES_PER_THREAD
            ),
            devices=nodes_of(self._program.gpu) if self._program.device == "cuda" else (),
        )
        return start(confinement, isolation=self.isolation.level, zygote=self._zygote_for(script, threads))

    def _environment(self, threads: int) -> dict[str, str]:
        scratch = self.scratch_directory
        return {
            # the interpreter's own folder comes last: ninja may be only there
            "PATH": f"/usr/local/bin:/usr/bin:/bin:{Path(sys.executable).parent}",
            "HOME": scratch,
            "TMPDIR": scratch,
            "USER": "guest",
            "LOGNAME": "guest",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": str(threads),
            "OMP_WAIT_POLICY": "passive",
            "TORCH_EXTENSIONS_DIR": f"{scratch}/torch_extensions",
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            # freed memory stays with the process: a page fault for each output would hide the kernel's own time
            "MALLOC_MMAP_THRESHOLD_": str(2**30),
            "MALLOC_TRIM_THRESHOLD_": str(2**40),
            "MALLOC_TOP_PAD_": str(2**27),
            # large pages, if the machine has them, make two processes differ less
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
            **({"CUDA_VISIBLE_DEVICES": self._program.gpu.uuid} if self._program.gpu else {}),
            **(FP32_IN_FP32 if self._program.device == "cuda" else {}),
            **self._program.environment,
        }

    def remove(self) -> None:
        """Remove all folders of the stage."""
        for folder in self._held:
            folder.remove()
