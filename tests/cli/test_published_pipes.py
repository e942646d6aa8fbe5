"""Commands in a workspace where a file that Forge makes was replaced by a pipe, or by one without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.asking import ask, history

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


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("kernel_registry.db.present", ("kernel", "list")),
        ("kernel_registry.db.present", ("run", "list")),
        ("kernel_registry.db.lock", ("ledger", "checkpoint")),
    ],
)
def test_a_pipe_beside_the_ledger_is_named_and_not_waited_for(
    name: str, command: tuple[str, ...], home: Path
) -> None:
    beside = home / name
    before = history(home)
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    refused = ask(*command, "--home", home)
    assert refused.status == 1
    assert f"{str(beside)!r} is 'prw-r--r--', expected a regular file" in refused.error
    beside.unlink()
    assert history(home) == before


def test_counts_of_processes_that_never_end_are_begun_anew(home: Path) -> None:
    present = home / "kernel_registry.db.present"
    endless(present)
    assert ask("kernel", "list", "--home", home).status == 0
    assert present.stat().st_size < FAR_BEYOND_MEMORY
