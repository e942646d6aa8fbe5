"""Published files are read only if they are what they were, and lie where they should."""

import os
from pathlib import Path

import pytest

from forge.errors import BlobCorrupt
from forge.lookup import Registry
from forge.lookup.published import read_published
from tests.lookup.asking import ASK, published
from tests.projections.histories import promoted

SOURCE = str(("a", "kernel.py")).encode()  # what a history's candidate called a consists of


def test_the_source_is_checked_when_it_is_read(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    kernel = registry.lookup(**ASK).kernel
    with pytest.raises(BlobCorrupt, match="can't be read"):
        kernel.read_source()
    source = Path(kernel.source_path)
    source.parent.mkdir(parents=True)
    source.write_bytes(b"pass")
    with pytest.raises(BlobCorrupt, match="has digest"):
        kernel.read_source()


@pytest.fixture
def kernel(history, tmp_path):
    """A promoted kernel whose kernel.py lies where it should."""
    promoted(history)
    found = published(history, tmp_path).lookup(**ASK).kernel
    source = Path(found.source_path)
    source.parent.mkdir(parents=True)
    source.write_bytes(SOURCE)
    assert found.read_source() == SOURCE
    return found


def test_a_symbolic_link_is_not_followed_even_to_the_right_bytes(kernel, tmp_path):
    source = Path(kernel.source_path)
    outside = source.rename(tmp_path / "outside.py")
    source.symlink_to(outside)
    with pytest.raises(BlobCorrupt, match="can't be read"):
        kernel.read_source()


@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_that_is_a_symbolic_link_is_not_followed(kernel, tmp_path, level):
    folder = Path(kernel.source_path).parents[level]
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BlobCorrupt, match="can't be read"):
        kernel.read_source()


@pytest.mark.parametrize("name", ["current.json", "snapshot"])
def test_a_linked_pointer_or_snapshot_is_not_followed(kernel, tmp_path, name):
    root = tmp_path / "kernel_registry"
    path = root / name if name != "snapshot" else next(root.glob("lookup-*.json"))
    path.symlink_to(path.rename(tmp_path / "moved"))
    with pytest.raises(BlobCorrupt, match="can't be read"):
        Registry.open(tmp_path)


def test_the_registry_itself_may_be_a_link(kernel, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "kernel_registry")
    found = Registry.open(tmp_path / "link").lookup(**ASK).kernel
    assert found.read_source() == SOURCE


def test_a_pipe_or_a_device_cannot_hold_a_reader_up(kernel):
    source = Path(kernel.source_path)
    source.unlink()
    os.mkfifo(source)
    with pytest.raises(BlobCorrupt, match="expected a regular file"):
        kernel.read_source()


def test_a_file_without_end_is_not_read(tmp_path):
    with (tmp_path / "long").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(BlobCorrupt, match="at most"):
        read_published(str(tmp_path), "long", limit_bytes=1 << 16)


NAMES = ["../up", "a/../../up", "/etc/passwd", "", ".", "a//b", "a/", "a\x00b", ".hidden", "a b"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leaves_the_registry_is_refused(tmp_path, name):
    (tmp_path / "registry" / "a").mkdir(parents=True)
    (tmp_path / "up").write_bytes(b"outside")
    with pytest.raises(BlobCorrupt, match="expected plain names"):
        read_published(str(tmp_path / "registry"), name)
