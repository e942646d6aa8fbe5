"""What a reference file's guest leaves where compiled code is kept never leads the host elsewhere."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from forge.lab.baselines import compiled_copy, compiled_folder
from forge.lab.job import Job
from forge.operations.own import own_operation
from tests.candidates import job_for
from tests.lab.reference import references


@pytest.fixture
def own() -> Job:
    contract = references.square_contract(4)
    job = job_for("", language="torch")
    return replace(job, operation=own_operation(contract, b"def kernel(x):\n    return x\n"))


def test_only_plain_files_and_folders_are_copied(own: Job, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o600)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "also").write_text("of the host")
    kept = compiled_folder(own)
    (kept / "triton").mkdir()
    (kept / "triton" / "kernel.cubin").write_bytes(b"code")
    os.symlink(secret, kept / "leak")
    os.symlink(tmp_path / "folder", kept / "triton" / "leak")
    os.symlink(tmp_path / "nowhere", kept / "dangling")
    os.mkfifo(kept / "pipe")
    with compiled_copy(compiled_folder(own)) as copy:
        assert sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*")) == [
            "triton",
            "triton/kernel.cubin",
        ]
    assert secret.stat().st_mode & 0o777 == 0o600


def test_each_reference_file_has_a_folder_of_its_own(own: Job) -> None:
    assert compiled_folder(own) != compiled_folder(job_for("", language="torch"))
