"""A file is written whole or not at all, and only in the place of a file."""

import os
import stat
from pathlib import Path

import pytest

from forge.errors import StorageFailed
from forge.ledger.durable import write_durably, write_whole


@pytest.mark.parametrize("write", [write_durably, write_whole])
def test_a_pipe_or_a_device_stays_what_it_is(write: object, tmp_path: Path) -> None:
    assert callable(write)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(StorageFailed, match="isn't a plain file"):
        write(pipe, b"content", mode=0o644)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_file_and_a_link_are_replaced(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "link"
    kept.write_bytes(b"old")
    link.symlink_to(kept)
    write_durably(link, b"new", mode=0o644)
    assert (kept.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"old", b"new", False)
