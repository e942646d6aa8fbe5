"""Forge's own code in a candidate's process: each file of it stands in a folder that docs/trust.md names."""

import re
from pathlib import Path

import pytest

import forge
from forge.domain.verdict import Rejected
from forge.lab.verification import examine
from tests.candidates import job_for

ROOT = Path(forge.__file__).parent
ATTEMPTS = 3
"""Looking at every object of an interpreter can itself fail, so the candidate is asked more than once."""
LISTS_ALL_CODE = """
import gc, sys, types

gc.unfreeze()
files = {one.__code__.co_filename for one in gc.get_objects() if type(one) is types.FunctionType}
files |= {getattr(module, "__file__", None) or "" for module in sys.modules.values()}
raise RuntimeError("\\n".join(f"FILE {file}" for file in files if file.startswith(("/stage", "ROOT"))))


def fused_add_rmsnorm(x, residual, weight, eps):
    return x, residual
""".replace("ROOT", str(ROOT))


def named_folders() -> set[str]:
    text = (ROOT.parent / "docs" / "trust.md").read_text()
    section = text.split("## What shares a process with a candidate")[1].split("\n## ")[0]
    return {name.rstrip("/") for name in re.findall(r"^- `(forge/[^`]+)`", section, re.MULTILINE)}


def files_in_a_guest() -> set[str]:
    """Forge's files whose code a candidate finds in its process, by their place in the repository."""
    listed: list[str] = []
    for _ in range(ATTEMPTS):
        examined = examine(job_for(LISTS_ALL_CODE, language="torch"), progress=lambda _: None)
        assert isinstance(examined.verdict, Rejected), examined
        listed = listed or re.findall(r"FILE (\S+)", examined.log)
    assert listed, examined
    staged = {f"forge/{name.removeprefix('/stage/')}" for name in listed if name.startswith("/stage/guest/")}
    ours = {f"forge/{Path(name).relative_to(ROOT)}" for name in listed if name.startswith(f"{ROOT}/")}
    return staged | ours


@pytest.mark.usefixtures("walls")
def test_each_file_is_in_a_named_folder_that_says_guest() -> None:
    found = files_in_a_guest()
    assert "forge/guest/wire.py" in found
    unnamed = {name for name in found if not any(name.startswith(f"{folder}/") for folder in named_folders())}
    assert unnamed == set()
    assert all("guest" in name for name in found)
