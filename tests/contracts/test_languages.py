"""Every language keeps its contract: a guide that renders, a guest's side that stands alone, a kernel that runs."""

import ast
import sys
from pathlib import Path

import pytest

from forge.domain.candidate import BUILDS
from forge.domain.digest import sha256
from forge.domain.policy import Policy
from forge.domain.target import Target
from forge.domain.task import Task
from forge.errors import EnvironmentUnfit, UnknownName
from forge.lab.calls.artifact import build_artifact
from forge.lab.verification import examine
from forge.languages import LANGUAGES, Language, find_language
from forge.lookup.answer import BUILT_LANGUAGES
from forge.operations import find_operation
from forge.pipeline.prompt import render
from forge.sandbox.build import Built
from tests.candidates import EXAMPLES, job_for

KERNELS = {
    "cpp": (EXAMPLES / "honest_cpp" / "kernel.py").read_text(),
    "triton": (EXAMPLES / "honest_triton" / "kernel.py").read_text(),
    "cuda": (Path(__file__).parents[1] / "gpu" / "cuda" / "honest.py").read_text(),
    "torch": (EXAMPLES / "honest_cpp" / "reference.py").read_text(),
}
languages = pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)


@languages
def test_the_guests_side_imports_nothing_of_ours(language: Language) -> None:
    tree = ast.parse(language.guest_file.read_text())
    allowed = sys.stdlib_module_names | {"torch", "numpy", language.name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.split(".")[0] in allowed for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.module or "").split(".")[0] in allowed


@languages
def test_the_guests_side_prepares_and_builds_where_the_language_says_so(language: Language) -> None:
    functions = {
        node.name for node in ast.parse(language.guest_file.read_text()).body if isinstance(node, ast.FunctionDef)
    }
    assert "prepare" in functions
    assert ("build" in functions) == language.builds
    assert (language.name in BUILDS) == language.builds
    assert (language.name in BUILT_LANGUAGES) == language.builds


@languages
def test_the_guide_is_part_of_the_brief(language: Language) -> None:
    operation, digest = find_operation("rmsnorm"), sha256(b"")
    task = Task(
        op="rmsnorm",
        language=language.name,
        target=Target(platform="cpu", gpu="cpu"),
        dtype="fp32",
        shape=dict(operation.workloads[0]),
        minimum_speedup=1.1,
        baselines=("eager",),
        scalars=dict(operation.scalars),
        reference_sha256=digest,
        inputs_sha256=digest,
        tolerance_sha256=digest,
        held_out_sha256=digest,
        policy_sha256=digest,
    )
    brief = render(task, run_id="run", skills=(), policy=Policy()).files["agent_prompt.md"].decode()
    assert language.guide_file.read_text().split("{")[0].strip()[:60] in brief
    assert operation.signature in brief


@languages
def test_times_and_stand_ins_are_for_different_platforms(language: Language) -> None:
    assert language.times_on
    assert not set(language.times_on) & set(language.stands_in_on)


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UnknownName):
        find_language("fortran")


@pytest.mark.usefixtures("walls", "short_series")
@languages
def test_a_minimal_kernel_builds_and_runs_behind_the_walls(language: Language) -> None:
    if language.name == "triton":
        pytest.importorskip("triton")
    if not {"cpu"} & {*language.times_on, *language.stands_in_on}:
        _builds_without_a_gpu(language)
        return
    seen: list[str] = []
    examined = examine(
        job_for(KERNELS[language.name], language=language.name, shape={"batch": 2, "hidden_size": 16}),
        progress=seen.append,
    )
    assert examined.verdict.verdict == "accepted", (examined.verdict, examined.log)
    assert ("build" in seen) == language.builds
    assert bool(examined.artifact) == language.builds


def _builds_without_a_gpu(language: Language) -> None:
    """What runs nowhere but on a GPU is built here, where its compiler is, and run in tests/gpu."""
    job = job_for(KERNELS[language.name], language=language.name)
    try:
        built = build_artifact(job)
    except EnvironmentUnfit as unfit:
        pytest.skip(str(unfit))
    assert isinstance(built, Built), built
    assert {Path(file.name).suffix for file in built.files} == {".so", ".cubin"}
