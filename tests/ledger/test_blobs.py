import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forge.domain.digest import sha256
from forge.errors import BlobCorrupt, StorageFailed
from forge.ledger.blobs import BlobStore


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "forge_runs" / "cas")


def files(blobs: BlobStore) -> list[str]:
    return sorted(path.name for path in blobs.root.rglob("*") if not path.is_dir())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=2000))
def test_what_is_put_is_what_is_got_under_the_digest_of_its_bytes(content: bytes, blobs: BlobStore) -> None:
    digest = blobs.put(content)
    assert digest == sha256(content)
    assert blobs.put(content) == digest
    assert blobs.get(digest) == content


def test_a_blob_lies_under_its_first_two_digits_and_cannot_be_written(blobs: BlobStore) -> None:
    digest = blobs.put(b"report")
    assert blobs.path(digest) == blobs.root / digest[:2] / digest
    assert blobs.path(digest).stat().st_mode & 0o777 == 0o444
    assert files(blobs) == [digest]


def test_has_says_whether_a_blob_was_put(blobs: BlobStore) -> None:
    assert not blobs.has(sha256(b"x"))
    assert blobs.has(blobs.put(b"x"))


def test_a_missing_blob_is_named(blobs: BlobStore) -> None:
    with pytest.raises(BlobCorrupt, match="missing"):
        blobs.get(sha256(b"never"))


@pytest.mark.parametrize("content", [b"reporT", b"", b"report\n"])
def test_an_edited_blob_is_never_given_out(content: bytes, blobs: BlobStore) -> None:
    digest = blobs.put(b"report")
    blobs.path(digest).chmod(0o644)
    blobs.path(digest).write_bytes(content)
    with pytest.raises(BlobCorrupt, match=sha256(content)):
        blobs.get(digest)


def test_putting_the_right_bytes_again_repairs_a_blob(blobs: BlobStore) -> None:
    digest = blobs.put(b"report")
    blobs.path(digest).chmod(0o644)
    blobs.path(digest).write_bytes(b"damaged")
    blobs.put(b"report")
    assert blobs.get(digest) == b"report"
    assert files(blobs) == [digest]


def test_a_link_in_a_blobs_place_is_not_followed(blobs: BlobStore, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"report")
    digest = blobs.put(b"report")
    blobs.path(digest).unlink()
    blobs.path(digest).symlink_to(elsewhere)
    with pytest.raises(BlobCorrupt):
        blobs.get(digest)
    blobs.put(b"report")
    assert not blobs.path(digest).is_symlink()
    assert blobs.get(digest) == b"report"


def test_a_pipe_in_a_blobs_place_does_not_hang_the_reader(blobs: BlobStore) -> None:
    digest = blobs.put(b"report")
    blobs.path(digest).unlink()
    os.mkfifo(blobs.path(digest))
    with pytest.raises(BlobCorrupt):
        blobs.get(digest)


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "a/" * 32])
def test_only_a_digest_names_a_blob(digest: str, blobs: BlobStore) -> None:
    for ask in (blobs.path, blobs.get, blobs.has):
        with pytest.raises(BlobCorrupt, match="names no blob"):
            ask(digest)


def test_a_place_that_cannot_be_written_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "cas").write_bytes(b"a file where the folder should be")
    with pytest.raises(StorageFailed):
        BlobStore(tmp_path / "cas").put(b"x")
