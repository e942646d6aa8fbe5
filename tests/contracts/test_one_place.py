"""An addition of any kind touches one folder of the package, and the whole of Forge knows it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forge

PACKAGE = Path(forge.__file__).parent
SHIPPED = PACKAGE.parent

GATE = '''"""Does one call at the public shape return at all?"""

from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.gates.gate import Gate


def examine(kernel: LoadedKernel) -> Finding:
    """Ask once."""
    checked = kernel.check([kernel.case(kernel.shape)])
    return checked if isinstance(checked, Failed) else Passed(observed="1 call", threshold="an answer")


ONCE = Gate(name="once", examine=examine)
'''
FOLD = '''"""Folds how often each author handed something in."""

from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.state import State

TYPES = frozenset({"CandidateSubmitted"})


def take(state: State, line: Line, _: Source) -> None:
    """Count a submission of its author."""
    author = str(line.event["author"])
    row = state.get("handed_in", author) or {"author": author, "times": 0}
    state.put("handed_in", row | {"times": row["times"] + 1}, author)
'''
TABLE = """
CREATE TABLE handed_in (
    author VARCHAR NOT NULL,
    times INTEGER NOT NULL,
    PRIMARY KEY (author)
)
WITHOUT ROWID;
"""
OPERATION = '''"""Softmax by another name."""

from dataclasses import replace

from forge.operations.softmax import SOFTMAX

SOFTMIN = replace(SOFTMAX, name="softmin")
'''
PLATFORM = '''"""Devices that nothing here can find."""

from forge.platforms.platform import Platform

VULKAN = Platform(name="vulkan", summary="a device of Vulkan", gpu=lambda: None, available=lambda: False)
'''
PROCESSOR = """
GPUS += (
    Processor(
        slug="vk1", name="Vulkan 1", platform="vulkan", market="consumer", arch="vk", source="https://example.org"
    ),
)
"""
EVENT = '''

class KernelPraised(Fact):
    """A program that adopted a kernel liked it."""

    kernel_id: str
'''
APPEND = """
import sys
from pathlib import Path

from forge.app.workspace import Workspace
from forge.events import KernelPraised

with Workspace.open(Path(sys.argv[1])) as workspace:
    workspace.append_at(KernelPraised(kernel_id="softmax_v1"), 0)
"""
AUTHOR = '''"""Hands in the first of its folders alone."""

from forge.authors.folders import FolderAuthor


class FirstAuthor(FolderAuthor):
    """Author of one candidate."""

    @property
    def name(self) -> str:
        """Return the kind."""
        return "first"
'''
MAKE = """
from pathlib import Path

from forge.app.sessions.author_folders import read_source
from forge.authors.kinds import make_author

print(make_author(read_source("first", Path("drafts"), {})).name)
"""
GUEST = '''"""Runs beside hostile code. NumPy candidates need no preparation."""


def prepare(body: dict[str, object]) -> None:
    """Do nothing: there is nothing to prepare."""
'''
ENTRY = """
        Language(
            name="numpy",
            title="NumPy",
            summary="NumPy over the memory of tensors",
            needs=("torch",),
            builds=False,
            modules=("torch", "numpy"),
            times_on=("cpu",),
            library_calls=True,
        ),
        Language(
            name="cpp","""


class Copy:
    """A package whose files are links to Forge's, but for one folder that is a copy and can be changed."""

    def __init__(self, root: Path, folder: str) -> None:
        self.root, self.folder = root, root / "forge" / folder
        link(PACKAGE, root / "forge", Path(folder).parts)

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert text.count(old) == 1, f"{name}: {old!r}"
        path.write_text(text.replace(old, new))

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, ends: int = 0) -> str:
        return self.python("-m", "forge", *arguments, ends=ends)

    def python(self, *arguments: str, ends: int = 0) -> str:
        answer = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            timeout=300,
        )
        assert answer.returncode == ends, answer.stdout + answer.stderr
        return answer.stdout


def link(source: Path, target: Path, to_change: tuple[str, ...]) -> None:
    """Make the folder `target`, with links for everything of `source` but the folder to change."""
    if not to_change:
        shutil.copytree(source, target)
        return
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.name == to_change[0]:
            link(path, target / path.name, to_change[1:])
        elif path.name != "__pycache__":
            (target / path.name).symlink_to(path)


@pytest.mark.usefixtures("walls")
def test_a_gate_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "lab/gates")
    copy.write("once.py", GATE)
    copy.replace(
        "__init__.py",
        "from forge.lab.gates.replay",
        "from forge.lab.gates.once import ONCE\nfrom forge.lab.gates.replay",
    )
    copy.replace("__init__.py", "    *(SIGNATURE,", "    ONCE,\n    *(SIGNATURE,")
    (tmp_path / "kernel.py").write_text("import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1) * 1.5\n")
    refused = copy.run("check", "kernel.py", "--op", "softmax", "--json", ends=1)
    assert '"once"' in refused


@pytest.mark.usefixtures("walls")
def test_an_operation_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "operations")
    copy.write("softmin.py", OPERATION)
    copy.replace(
        "__init__.py",
        "from forge.operations.topk_per_row",
        "from forge.operations.softmin import SOFTMIN\nfrom forge.operations.topk_per_row",
    )
    copy.replace("__init__.py", "LAYERNORM, SOFTMAX)", "LAYERNORM, SOFTMAX, SOFTMIN)")
    (tmp_path / "kernel.py").write_text("import torch\n\n\ndef softmin(x):\n    return torch.softmax(x, -1) * 1.5\n")
    refused = copy.run("check", "kernel.py", "--op", "softmin", "--json", ends=1)
    assert "INCORRECT_NUMERICAL" in refused


def test_a_platform_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "platforms")
    copy.write("vulkan.py", PLATFORM)
    copy.replace("__init__.py", "(CPU, CUDA)", "(CPU, CUDA, VULKAN)")
    copy.replace(
        "__init__.py",
        "from forge.platforms.processor import",
        "from forge.platforms.vulkan import VULKAN\nfrom forge.platforms.processor import",
    )
    copy.replace("gpu_table/__init__.py", "\n\n__all__", f"\n{PROCESSOR}\n__all__")
    copy.replace("gpu_table/__init__.py", "\nGPUS =", "from forge.platforms.processor import Processor\n\nGPUS =")
    assert '"vulkan"' in copy.run("doctor", "--json")


def test_an_event_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "events")
    copy.write("doubt.py", (copy.folder / "doubt.py").read_text() + EVENT)
    copy.replace("every.py", "import KernelDoubted\n", "import KernelDoubted, KernelPraised\n")
    copy.replace("every.py", "    | KernelDoubted\n", "    | KernelDoubted\n    | KernelPraised\n")
    copy.replace("every.py", '    "KernelDoubted",\n', '    "KernelDoubted",\n    "KernelPraised",\n')
    line = '    "KernelPraised": Kind("observed", "kernel:{kernel_id}"),\n'
    copy.replace("kinds.py", '    "KernelPromoted": Kind(', f'{line}    "KernelPromoted": Kind(')
    home = str(tmp_path / "home")
    copy.run("init", home)
    copy.python("-c", APPEND, home)
    assert "KernelPraised" in copy.run("ledger", "log", "--home", home, "--json")
    copy.run("ledger", "verify", "--full", "--home", home)


def test_an_author_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "authors")
    copy.write("first.py", AUTHOR)
    copy.replace("__init__.py", '"person")', '"person", "first")')
    copy.replace(
        "kinds.py",
        "from forge.authors.folders",
        "from forge.authors.first import FirstAuthor\nfrom forge.authors.folders",
    )
    line = '    "first": AuthorKind("folders", lambda source: FirstAuthor(_of_folders(source).drafts)),\n'
    copy.replace("kinds.py", '    "search": AuthorKind(', f'{line}    "search": AuthorKind(')
    (tmp_path / "drafts" / "one").mkdir(parents=True)
    (tmp_path / "drafts" / "one" / "kernel.py").write_text("import torch\n")
    assert copy.python("-c", MAKE) == "first\n"
    assert "person or first" in " ".join(copy.run("agent", "run", "--help").split())


@pytest.mark.slow
def test_a_projection_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "projections")
    copy.write("handed_in.py", FOLD)
    copy.replace("folds.py", "    history,\n", "    handed_in,\n    history,\n")
    copy.replace("folds.py", "    (claims.TYPES,", "    (handed_in.TYPES, handed_in.take),\n    (claims.TYPES,")
    copy.write("schema.sql", (copy.folder / "schema.sql").read_text() + TABLE)
    copy.replace("history_version.py", "SCHEMA_VERSION = ", "SCHEMA_VERSION = 1")
    copy.replace("sql_surface.py", "SURFACE = {", 'SURFACE = {\n    "handed_in": "How often each author handed in.",')
    home = tmp_path / "home"
    home.mkdir()
    for name in ("kernel_registry.db", "forge_runs", "keys"):
        source = SHIPPED / name
        if source.is_dir():
            shutil.copytree(source, home / name)
        elif source.exists():
            shutil.copy(source, home / name)
    copy.run("ledger", "rebuild", "--home", str(home))
    told = copy.run("audit", "sql", "SELECT sum(times) > 0 AS some FROM handed_in", "--home", str(home), "--json")
    assert "1" in told


def test_a_language_is_one_folder(tmp_path: Path) -> None:
    copy = Copy(tmp_path, "languages")
    copy.write("numpy/guest.py", GUEST)
    copy.write("numpy/guide.md.j2", "Use NumPy over the memory of the tensors: `x.numpy()`.\n")
    copy.write("numpy/starter.py.j2", (PACKAGE / "languages" / "torch" / "starter.py.j2").read_text())
    playbook = (PACKAGE / "languages" / "torch" / "playbook.md").read_text()
    copy.write("numpy/playbook.md", playbook.replace("torch", "numpy"))
    copy.replace("__init__.py", '\n        Language(\n            name="cpp",', ENTRY)
    home = ("--home", str(tmp_path / "home"))
    copy.run("init", str(tmp_path / "home"))
    task = (
        "--op",
        "softmax",
        "--language",
        "numpy",
        "--gpu",
        "cpu",
        "--dtype",
        "fp32",
        "--shape",
        "batch=2,hidden_size=16",
    )
    copy.run("task", "create", *task, *home)
    assert "playbook.numpy" in copy.run("skill", "list")
    copy.run("new", "numpy_softmax", "mine", *home)
    assert "NumPy writes the result" in (tmp_path / "mine" / "kernel.py").read_text()
