"""Runs beside hostile code. Builds CUDA C++ once in the builder, and loads the result everywhere else.

There are two conventions, as for C++. nvcc compiles text in a string constant to `libkernel.so`, which lies beside
kernel.py for `ctypes.CDLL`. Or kernel.py calls `torch.utils.cpp_extension.load_inline`, unmodified. In both cases the
builder also returns the device code: nvcc keeps the cubins that it puts into the library.
"""

import importlib
import os
import shutil
import subprocess
from pathlib import Path

PLAIN_LIBRARY = "libkernel.so"
"""File to which CUDA text is compiled; any other shared object is a Python extension."""


def prepare(body: dict[str, object]) -> None:
    """Let `load_inline` and `load` return the builder's result; a plain `libkernel.so` needs nothing."""
    directory = Path(str(body["candidate_directory"]))
    if any(path.name != PLAIN_LIBRARY for path in directory.glob("*.so")):
        importlib.import_module(".extension", __package__).use_prebuilt(directory)


def build(body: dict[str, object]) -> list[Path]:
    """Compile the candidate; return the shared objects and the cubins in them."""
    scratch = Path(str(body["scratch_directory"]))
    kept = scratch / "kept"
    kept.mkdir()
    os.environ["NVCC_APPEND_FLAGS"] = f"--keep --keep-dir={kept}"
    source = body.get("source")
    flags = [str(flag) for flag in body["flags"]]  # type: ignore[attr-defined]  # the host's list
    if isinstance(source, str):
        libraries = [_compile(source, flags, code=str(body["code"]), scratch=scratch)]
    else:
        extension = importlib.import_module(".extension", __package__)
        libraries = extension.build(Path(str(body["candidate_directory"])), scratch, flags=())
    return [*libraries, *_cubins(kept, scratch)]


def _compile(source: str, flags: list[str], *, code: str, scratch: Path) -> Path:
    text, target = scratch / "kernel.cu", scratch / PLAIN_LIBRARY
    text.write_text(source)
    nvcc = Path(os.environ["CUDA_HOME"]) / "bin" / "nvcc"
    device = f"arch={code.replace('sm_', 'compute_')},code={code}"
    options = ["-shared", "-Xcompiler", "-fPIC", "-cudart", "static", "-gencode", device]
    subprocess.run([str(nvcc), *flags, *options, str(text), "-o", str(target)], check=True)
    return target


def _cubins(kept: Path, scratch: Path) -> list[Path]:
    """Return the device code of each unit as kernel.cubin, kernel.1.cubin and so on; linking adds none."""
    named = []
    for count, made in enumerate(sorted(kept.rglob("*.cubin"))):
        path = scratch / (f"kernel.{count}.cubin" if count else "kernel.cubin")
        named.append(Path(shutil.copyfile(made, path)))
    return named
