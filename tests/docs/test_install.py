"""README's command to install the lab takes torch's CPU build, also where PyPI has a newer CUDA build."""

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
COMMAND = re.compile(r"^pip install (.*'\.\[lab\]')$", re.MULTILINE)
PIN = re.compile(r"^torch==(\S+)$", re.MULTILINE)


def readme_options() -> list[str]:
    """Return what stands between `pip install` and what is installed, in README's one command for the lab."""
    (found,) = COMMAND.findall((ROOT / "README.md").read_text())
    *options, asked = shlex.split(found)
    assert asked == ".[lab]"
    return options


def index(folder: Path, *versions: str) -> str:
    """Make an index with empty wheels of torch, and return its address."""
    (folder / "torch").mkdir(parents=True)
    links = []
    for version in versions:
        name = f"torch-{version}-py3-none-any.whl"
        about = f"torch-{version}.dist-info"
        with zipfile.ZipFile(folder / "torch" / name, "w") as wheel:
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
            wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{about}/RECORD", "")
        links.append(f'<a href="{name.replace("+", "%2B")}">{name}</a>')
    (folder / "torch" / "index.html").write_text("\n".join(links))
    return folder.as_uri()


def chosen(options: list[str], pypi: str, home: Path) -> str:
    """Return the version of torch that pip would install; it finds no settings in `home`, where it may write."""
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--index-url", pypi, *options]
    command += ["--dry-run", "--ignore-installed", "--no-deps", "--no-cache-dir", "--report", "-", "torch"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "XDG_CONFIG_DIRS": str(home), "HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    (taken,) = json.loads(done.stdout)["install"]
    version: str = taken["metadata"]["version"]
    return version


def test_the_command_for_the_lab_takes_the_cpu_build(tmp_path: Path) -> None:
    (pinned,) = PIN.findall((ROOT / "constraints.txt").read_text())
    pypi = index(tmp_path / "pypi", pinned, "99.0")
    cpu = index(tmp_path / "cpu", f"{pinned}+cpu")
    options = readme_options()
    assert CPU_INDEX in options
    assert chosen([cpu if one == CPU_INDEX else one for one in options], pypi, tmp_path) == f"{pinned}+cpu"
    assert chosen([], pypi, tmp_path) == "99.0", "without the options pip takes the newest CUDA build"
    assert chosen(["--extra-index-url", cpu], pypi, tmp_path) == "99.0", "the constraints keep a newer CUDA build out"
    assert chosen(["-c", "constraints.txt"], pypi, tmp_path) == pinned, "on a GPU the index is left out"


def test_readme_names_the_version_that_is_pinned() -> None:
    (pinned,) = PIN.findall((ROOT / "constraints.txt").read_text())
    said = (ROOT / "README.md").read_text()
    assert f"`{pinned}+cpu`" in said
    assert f"`{pinned}`" in said


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/use-it-in-ci.md", "Containerfile"])
def test_every_page_that_installs_the_lab_names_the_index_of_cpu_builds(page: str) -> None:
    text = (ROOT / page).read_text().replace("\\\n", " ")
    commands = [line for line in text.splitlines() if "pip install" in line and "[lab" in line]
    assert commands
    assert all(f"--extra-index-url {CPU_INDEX}" in line for line in commands), commands
