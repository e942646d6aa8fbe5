"""A pipe that nothing writes to, or an endless file, is no input: a command refuses it at once."""

import os
from pathlib import Path

import pytest

from forge.app.claims import check_files
from forge.app.solve.score import read_suite
from forge.cli.adopt import _read
from forge.errors import UsageError


@pytest.mark.parametrize("kind", ["pipe", "endless"])
@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda path: check_files(path.parent, [path], code=False), "page.md"),
        (read_suite, "suite.json"),
        (_read, "report.json"),
    ],
    ids=["claims", "suite", "report"],
)
def test_a_file_that_never_ends_is_refused(kind: str, read, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match=r"can't read|can't be read|is no report"):
        read(path)
