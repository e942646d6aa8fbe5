"""A starting point has five files that pass as they are: in each language, for catalogue and own operations."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.candidate_files import REQUIRED_FILES
from forge.lab.device.toolkit import has_toolkit
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS, find_operation
from forge.pipeline.starter import starter_files
from tests.cli.asking import ask

FUNCTION = """import torch


def scaled(x):
    return torch.nn.functional.silu(x) * 2.0


def get_inputs():
    return [torch.randn(16, 64)]
"""
MODULE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return [32]
"""
NAMED = """import torch


def kernel(x, y, *, scale):
    return {"sum": (x * scale).sum(0), "parts": [x + 1.0, (torch.relu(y), y)]}


def get_inputs():
    return [torch.randn(16, 64), torch.randn(16, 4), 2.0]
"""
NESTED = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, *, hidden):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden)

    def forward(self, x, *, state=None):
        return self.rnn(x, state)


def get_inputs():
    return {"x": torch.randn(7, 4, 6), "state": (torch.randn(1, 4, 5), torch.randn(1, 4, 5))}


def get_init_inputs():
    return [[6], {"hidden": 5}]
"""
SOLUTION = MODULE.replace("class Model(", "class ModelNew(").replace(
    "torch.relu(self.linear(x))", "self.linear(x).clamp(min=0)"
)
WITH_A_BUFFER = SOLUTION.replace(
    "super().__init__()", "super().__init__()\n        self.register_buffer('least', torch.zeros(1))"
)


def catalogue_task(home: Path, op: str, language: str, gpu: str) -> str:
    shape = "batch=4,hidden_size=64"
    asked = ("--op", op, "--language", language, "--gpu", gpu, "--dtype", "fp32", "--shape", shape)
    return str(ask("task", "create", *asked, "--home", home, "--json").document["task_id"])


def own_task(home: Path, folder: Path, source: str, language: str) -> str:
    (folder / "mine.py").write_text(source)
    asked = ("--reference", folder / "mine.py", "--language", language, "--gpu", "cpu", "--dtype", "fp32", "--yes")
    return str(ask("task", "create", *asked, "--home", home, "--json").document["task_id"])


def passes(home: Path, task: str, folder: Path, *options: object) -> None:
    made = ask("new", task, folder, *options, "--home", home, "--json")
    assert made.status == 0, made
    assert sorted(path.name for path in folder.iterdir()) == sorted(REQUIRED_FILES)
    assert made.last == f"next: forge submit last {folder}"
    assert ask("submit", "last", folder, "--home", home).status == 0
    verified = ask("verify", "last", "--home", home, "--json")
    if verified.status == 3:
        pytest.skip(verified.error)
    assert verified.document["verdict"] == "accepted", verified.out


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
@pytest.mark.parametrize(("language", "gpu"), [("cpp", "cpu"), ("torch", "cpu"), ("triton", "h200")])
def test_a_starting_point_for_an_operation_of_the_catalogue_passes(
    language: str, gpu: str, empty: Path, tmp_path: Path
) -> None:
    passes(empty, catalogue_task(empty, "rmsnorm", language, gpu), tmp_path / "mine")


@pytest.mark.skipif(not has_toolkit(), reason="no CUDA toolkit here")
def test_a_starting_point_in_cuda_is_built(empty: Path, tmp_path: Path) -> None:
    task = catalogue_task(empty, "rmsnorm", "cuda", "h200")
    assert ask("new", task, tmp_path / "mine", "--home", empty).status == 0
    assert ask("submit", "last", tmp_path / "mine", "--home", empty).status == 0
    verified = ask("verify", "last", "--home", empty)
    assert verified.status in (0, 3), verified
    assert verified.status == 0 or "build passed" in verified.error or "nor can they be built" in verified.error


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
@pytest.mark.parametrize(
    ("source", "language"),
    [(FUNCTION, "torch"), (MODULE, "cpp"), (NAMED, "torch"), (NESTED, "cpp")],
    ids=["function", "module", "keywords and a dictionary", "nested results"],
)
def test_a_starting_point_for_a_reference_file_passes(
    source: str, language: str, empty: Path, tmp_path: Path
) -> None:
    passes(empty, own_task(empty, tmp_path, source, language), tmp_path / "mine")


@pytest.mark.usefixtures("walls", "short_series", "no_shapes")
@pytest.mark.parametrize("solution", [SOLUTION, WITH_A_BUFFER], ids=["as it is", "with a buffer of its own"])
def test_a_solution_with_modelnew_is_a_starting_point(solution: str, empty: Path, tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text(solution)
    task = own_task(empty, tmp_path, MODULE, "torch")
    passes(empty, task, tmp_path / "mine", "--from", tmp_path / "solution.py")
    assert (tmp_path / "mine" / "kernel.py").read_text() == solution


def test_a_folder_with_content_and_a_solution_without_the_class_are_refused(home: Path, tmp_path: Path) -> None:
    task = ask("task", "list", "--home", home, "--json").document[0]["task_id"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kernel.py").write_text("mine\n")
    refused = ask("new", task, tmp_path / "full", "--home", home)
    assert (refused.status, "has content already" in refused.error) == (2, True)
    assert (tmp_path / "full" / "kernel.py").read_text() == "mine\n"
    refused = ask("new", task, tmp_path / "full" / "kernel.py", "--home", home)
    assert (refused.status, "is a file" in refused.error) == (2, True)
    refused = ask("new", task, tmp_path / "full" / "kernel.py" / "inside", "--home", home)
    assert (refused.status, "expected a path that can be followed" in refused.error) == (2, True)
    (tmp_path / "loop").symlink_to("loop")
    refused = ask("new", task, tmp_path / "loop", "--home", home)
    assert (refused.status, "a link that leads to itself" in refused.error) == (2, True)
    refused = ask("new", task, tmp_path / "new", "--from", tmp_path / "full" / "kernel.py", "--home", home)
    assert (refused.status, "no class ModelNew" in refused.error) == (2, True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_full_disk_leaves_no_part_of_a_starting_point(
    is_there: bool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    if is_there:
        folder.mkdir()
    asked = ("new", "last", folder, "--home", home)
    with monkeypatch.context() as disk:
        rename = os.rename

        def refuse(source: str, target: Path) -> None:
            if Path(target).name == "bench.py":
                raise OSError(errno.ENOSPC, "No space left on device")
            rename(source, target)

        disk.setattr(os, "rename", refuse)
        refused = ask(*asked)
    assert (refused.status, "error[STORAGE_FAILED]" in refused.error) == (1, True)
    assert list(tmp_path.rglob("*.py")) == []
    assert folder.exists() == is_there
    assert ask(*asked).status == 0


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation_has_a_starting_point_in_every_language(op: str) -> None:
    operation = find_operation(op)
    for language in LANGUAGES:
        task = SimpleNamespace(
            target=SimpleNamespace(gpu="cpu"),
            op=op,
            language=language,
            shape=dict(operation.workloads[0]),
            dtype=operation.dtypes[0],
            scalars=dict(operation.scalars),
        )
        files = starter_files(task)  # type: ignore[arg-type]  # the fields of a task that it reads
        assert set(files) == set(REQUIRED_FILES)
        assert max(map(len, files.values())) <= FILE_LIMIT_BYTES
        for name in ("kernel.py", "reference.py", "test_correctness.py", "bench.py"):
            compile(files[name], name, "exec")


def test_the_next_step_names_the_task_if_the_newest_run_is_of_another(empty: Path, tmp_path: Path) -> None:
    first = catalogue_task(empty, "softmax", "cpp", "cpu")
    newest = catalogue_task(empty, "rmsnorm", "cpp", "cpu")
    folders = tmp_path / "first", tmp_path / "newest"
    assert ask("new", first, folders[0], "--home", empty).last == f"next: forge pipeline {first} {folders[0]}"
    assert ask("new", newest, folders[1], "--home", empty).last == f"next: forge submit last {folders[1]}"


def test_a_solution_with_a_text_to_compile_names_it_in_its_metadata(empty: Path, tmp_path: Path) -> None:
    task = own_task(empty, tmp_path, MODULE, "cpp")
    for folder, text in (("compiled", "CPP_SOURCE = 'int one;'\n"), ("own", "")):
        (tmp_path / "solution.py").write_text(SOLUTION + text)
        made = ask("new", task, tmp_path / folder, "--from", tmp_path / "solution.py", "--home", empty)
        assert made.status == 0, made
        assert ('"source": "CPP_SOURCE"' in (tmp_path / folder / "metadata.json").read_text()) == bool(text)
