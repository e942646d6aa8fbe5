"""Commands that read a published folder in which each file was replaced by a pipe, or by one without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.asking import ask

FAR_BEYOND_MEMORY = 2**42


def endless(path: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, FAR_BEYOND_MEMORY)


@pytest.mark.parametrize("make", [os.mkfifo, endless])
def test_no_pipe_and_no_file_without_end_holds_a_reader_up(home: Path, make: Callable[[Path], None]) -> None:
    published = home / "kernel_registry"
    names = {path.name for path in published.iterdir() if path.is_file()} | {"models.json"}
    assert names >= {"current.json", "verified_kernels.json", "ledger.vkey", "history.db"}
    for name in names - {".publish.lock"}:
        path = published / name
        path.unlink(missing_ok=True)
        make(path)
    assert ask("ledger", "verify", "--full", "--home", home).status in {0, 1}
    assert ask("recommend", "--model", "llama3.1-8b", "--gpu", "h200", "--home", home).status in {0, 1, 2}
    assert ask("kernel", "list", "--home", home).status == 0
    assert ask("ledger", "rebuild", "--home", home).status == 0
    assert ask("ledger", "verify", "--full", "--home", home).status == 0
