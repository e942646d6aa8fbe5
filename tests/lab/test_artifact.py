"""CUDA is built without a GPU: a library, its device code as data, and a refusal where either is missing."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from forge.domain.candidate import Metadata
from forge.errors import EnvironmentUnfit
from forge.lab import job
from forge.lab.calls.artifact import TEXT_SHARE, build_artifact, staged_files
from forge.lab.device import toolkit
from forge.sandbox import processor
from forge.sandbox.build import Built
from forge.sandbox.cubin import Cubin, read_cubin
from forge.sandbox.reply import Refused
from tests.candidates import job_for
from tests.evil.described import described

CANDIDATES = Path(__file__).parents[1] / "gpu" / "cuda"
HONEST = (CANDIDATES / "honest.py").read_text()


@pytest.fixture
def nvcc() -> Path:
    try:
        return toolkit.toolkit()
    except EnvironmentUnfit as unfit:
        pytest.skip(str(unfit))


def cubins(built: Built | Refused) -> dict[str, Cubin]:
    assert isinstance(built, Built), built
    return {file.name: read_cubin(file.content) for file in built.files if file.name.endswith(".cubin")}


@cache
def honest() -> Built:
    """What is built of the honest sources, once."""
    built = build_artifact(job_for(HONEST, language="cuda"))
    assert isinstance(built, Built), built
    return built


@pytest.mark.usefixtures("nvcc", "walls")
def test_a_library_comes_with_the_device_code_that_is_in_it() -> None:
    job, built = job_for(HONEST, language="cuda"), honest()
    assert [file.name for file in built.files] == ["libkernel.so", "kernel.cubin"]
    found = cubins(built)["kernel.cubin"]
    assert found.arch == "sm_90a"
    assert [name.count("fused") for name in found.kernels] == [1, 1, 1]
    assert found.externals == ()
    assert {"kernel.py", "libkernel.so", "kernel.cubin"} <= staged_files(job, built.files).keys()


@pytest.mark.usefixtures("nvcc", "walls")
def test_the_same_sources_make_the_same_device_code() -> None:
    again = build_artifact(job_for(HONEST, language="cuda"))
    assert isinstance(again, Built)
    assert again.files[1] == honest().files[1]


@pytest.mark.usefixtures("nvcc", "walls")
@pytest.mark.parametrize("path", sorted(CANDIDATES.glob("*.py")), ids=lambda path: path.stem)
def test_what_the_gpu_tests_run_is_built_unless_the_builder_refuses_it(path: Path) -> None:
    said, source = described(path), path.read_text()
    built = honest() if source == HONEST else build_artifact(job_for(source, language="cuda"))
    if said.gate == "build":
        assert isinstance(built, Refused)
        assert built.reason.code in said.codes
    else:
        assert cubins(built)


@pytest.mark.usefixtures("nvcc", "walls")
def test_a_compilers_complaint_is_in_the_log() -> None:
    built = build_artifact(job_for(HONEST.replace("__syncthreads();", "sync_threads();"), language="cuda"))
    assert isinstance(built, Refused)
    assert built.reason.code == "COMPILE_ERROR"
    assert 'identifier "sync_threads" is undefined' in built.log


@pytest.mark.usefixtures("nvcc", "walls")
def test_an_older_target_is_not_specific() -> None:
    job = replace(job_for(HONEST, language="cuda"), arch="sm_89")
    assert {found.arch for found in cubins(build_artifact(job)).values()} == {"sm_89"}


@pytest.mark.usefixtures("nvcc", "walls")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("__global__", "/* __global__ */ static"), "failed"),
        (lambda text: text.replace('r"""', 'r"""\n#if 0', 1).replace('\n}\n"""', '\n}\n#endif\n"""', 1), "no kernel"),
    ],
)
def test_a_library_without_kernels_is_refused(change: Callable[[str], str], message: str) -> None:
    built = build_artifact(job_for(change(HONEST), language="cuda"))
    assert isinstance(built, Refused)
    assert built.reason.code == "COMPILE_ERROR"
    assert message in built.reason.message


@pytest.mark.usefixtures("nvcc", "walls")
def test_every_flag_that_is_allowed_is_one_that_nvcc_takes() -> None:
    flags = [
        *("-O2", "--use_fast_math", "--fmad=false", "--ftz=true", "--prec-div=false", "--prec-sqrt=true"),
        *("-std=c++20", "--maxrregcount=64", "-lineinfo", "--extra-device-vectorization"),
        *("--expt-relaxed-constexpr", "--extended-lambda"),
    ]
    job = job_for(HONEST, language="cuda")
    described = {"name": "a", "op": "fused_add_rmsnorm", "language": "cuda", "cuda": {"flags": flags}}
    assert cubins(build_artifact(replace(job, metadata=Metadata.model_validate(described))))


@pytest.mark.parametrize(
    "flag",
    ["-rdc=true", "--maxrregcount=0", "-Xcompiler=-fplugin=x.so", "-I/etc", "-O3 -I/", "--keep", "-o/x", "-gencode"],
)
def test_any_other_flag_is_refused(flag: str) -> None:
    with pytest.raises(ValueError, match="flags"):
        Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": "cuda", "cuda": {"flags": [flag]}})


def test_a_machine_without_the_toolkit_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolkit, "_USUAL_PLACE", tmp_path)
    with pytest.raises(EnvironmentUnfit, match="no CUDA toolkit here") as unfit:
        build_artifact(job_for(HONEST, language="cuda"))
    assert unfit.value.hint == "install the CUDA toolkit; a GPU isn't needed to build, only to verify"


@pytest.mark.parametrize(("arch", "code"), [("sm_80", "sm_80"), ("sm_90", "sm_90a"), ("sm_100", "sm_100a")])
def test_from_hopper_on_code_is_for_one_architecture_alone(arch: str, code: str) -> None:
    assert toolkit.gpu_code(arch) == code


@pytest.mark.parametrize("arch", ["", "host", "gfx942", "sm_", "sm_90a"])
def test_a_target_that_is_no_gpu_is_refused(arch: str) -> None:
    with pytest.raises(EnvironmentUnfit, match="can't be built for the target"):
        toolkit.gpu_code(arch)


BUILDS = """
import os, time
import torch
from torch.utils.cpp_extension import load_inline
def burn():
    while True: pass
{does}
def fused_add_rmsnorm(*operands): return operands
"""
FEW_S = 1.0
"""Processor time of a build that burns it, in seconds. What it imports was imported before, and takes a fifth."""


def built_within(source: str, *, cpp_source: bool, limit_s: float) -> Built | Refused:
    job = job_for(source, language="cpp", cpp_source=cpp_source)
    return build_artifact(replace(job, policy=job.policy.model_copy(update={"build_limit_s": limit_s})))


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("children", [0, 3])
def test_processor_time_of_all_that_a_build_runs_is_bounded(children: int) -> None:
    does = f"[os.fork() or burn() for _ in range({children})]\ntime.sleep(60)" if children else "burn()"
    built = built_within(BUILDS.format(does=does), cpp_source=False, limit_s=FEW_S)
    assert isinstance(built, Refused)
    assert built.reason.code == "TIMEOUT"
    assert f"{FEW_S:g} s of processor time" in built.reason.message


@pytest.mark.usefixtures("walls")
def test_text_that_is_compiled_alone_has_a_share_of_that_time() -> None:
    bomb = Path(__file__).parents[1] / "evil" / "candidates" / "cpp_template_bomb.py"
    built = built_within(bomb.read_text(), cpp_source=True, limit_s=6 * FEW_S)
    assert isinstance(built, Refused)
    assert built.reason.code == "TIMEOUT"
    assert f"{TEXT_SHARE * 6 * FEW_S:g} s of processor time" in built.reason.message


@pytest.mark.usefixtures("walls")
def test_a_build_that_sleeps_is_seen_to_want_no_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "STILL_S", 6.0)  # a fifth of the usual: the limit on processor time stays far from it
    built = built_within(BUILDS.format(does="time.sleep(3600)"), cpp_source=False, limit_s=60.0)
    assert isinstance(built, Refused)
    assert built.reason.code == "TIMEOUT"
    assert "none of its threads wanted a processor" in built.reason.message


@pytest.mark.usefixtures("walls")
def test_a_build_that_only_the_clock_ends_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a machine doesn't show what a guest's threads want."""
    monkeypatch.setattr(processor, "descendants", lambda _: set())
    monkeypatch.setattr(job, "WALL_PER_CPU_S", 0.5)
    with pytest.raises(EnvironmentUnfit, match="no verdict on the build"):
        built_within(BUILDS.format(does="time.sleep(3600)"), cpp_source=False, limit_s=6.0)
