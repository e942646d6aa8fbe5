"""Opening, refreshing and the health of a published registry."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forge.domain.digest import canonical, sha256
from forge.errors import BlobCorrupt, IntegrityError, WorkspaceNotFound
from forge.lookup import Registry
from forge.projections.files import put
from tests.lookup.asking import ASK, published
from tests.projections.histories import (
    promoted,
    revoke,
)


@pytest.mark.parametrize("below", ["", "kernel_registry", "kernel_registry/current.json"])
def test_a_registry_opens_by_workspace_directory_or_pointer(history, tmp_path, below):
    promoted(history)
    published(history, tmp_path)
    assert Registry.open(tmp_path / below).lookup(**ASK).match == "exact"


def test_nothing_published_is_said_so(tmp_path):
    with pytest.raises(WorkspaceNotFound, match="no published registry"):
        Registry.open(tmp_path)


def damage_snapshot(directory: Path) -> None:
    (snapshot,) = directory.glob("lookup-*.json")
    content = snapshot.read_bytes()
    snapshot.chmod(0o644)
    snapshot.write_bytes(content.replace(b"eager", b"eagle"))


def lose_snapshot(directory: Path) -> None:
    (snapshot,) = directory.glob("lookup-*.json")
    snapshot.unlink()


def truncate_pointer(directory: Path) -> None:
    pointer = directory / "current.json"
    pointer.write_bytes(pointer.read_bytes()[:40])


def misname_snapshot(directory: Path) -> None:
    pointer = directory / "current.json"
    pointer.write_bytes(canonical({**json.loads(pointer.read_bytes()), "snapshot": "../elsewhere.json"}))


def empty_pointer(directory: Path) -> None:
    (directory / "current.json").write_bytes(b"[]")


DAMAGES = [damage_snapshot, lose_snapshot, truncate_pointer, misname_snapshot, empty_pointer]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_publication_does_not_open(history, tmp_path, damage):
    promoted(history)
    published(history, tmp_path)
    damage(tmp_path / "kernel_registry")
    with pytest.raises(BlobCorrupt):
        Registry.open(tmp_path)


@pytest.mark.parametrize(("schema", "next_step"), [(1, "publish the registry again"), (4, "upgrade Forge")])
@pytest.mark.parametrize("older", ["pointer", "snapshot"])
def test_a_snapshot_of_another_schema_is_refused_with_what_to_do(tmp_path, schema, next_step, older):
    in_snapshot, in_pointer = (schema, 3) if older == "snapshot" else (3, schema)
    content = b'{"gpus":{},"schema_version":%d,"slots":{},"kernels":[\n\n]}' % in_snapshot
    name = f"lookup-{sha256(content)[:12]}.json"
    ledger = {"ledger_id": "l", "seq": 1, "event_hash": "h"}
    pointer = {"schema_version": in_pointer, "snapshot": name, "sha256": sha256(content), "ledger": ledger}
    put(tmp_path, {name: content, "current.json": canonical(pointer)})
    with pytest.raises(IntegrityError, match=f"schema {schema}.*{next_step}"):
        Registry.open(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_failed_refresh_keeps_the_last_good_generation_and_health_says_so(history, tmp_path, damage):
    first = promoted(history, name="a")
    registry = published(history, tmp_path)
    good = registry.health()
    assert (good.ok, good.error, good.kernels, good.ledger_seq) == (True, None, 1, history.head.seq)
    revoke(history, first)
    (tmp_path / "kernel_registry").joinpath(f"lookup-{good.generation[:12]}.json").unlink()
    published(history, tmp_path)
    damage(tmp_path / "kernel_registry")
    assert not registry.refresh()
    assert registry.lookup(**ASK).kernel.kernel_id == first
    bad = registry.health()
    assert (bad.ok, bad.generation) == (False, good.generation)
    assert bad.error
    (tmp_path / "kernel_registry" / "current.json").unlink()
    published(history, tmp_path)
    assert registry.refresh()
    assert registry.health().ok
    assert registry.lookup(**ASK).match == "none"


def test_refreshing_an_unchanged_registry_changes_nothing(history, tmp_path):
    promoted(history)
    registry = published(history, tmp_path)
    assert not registry.refresh()
    assert registry.health().ok


def test_importing_and_asking_loads_the_standard_library_only(history, tmp_path):
    promoted(history)
    published(history, tmp_path)
    code = (
        "import sys; from forge.lookup import Registry; light = set(sys.modules)\n"
        "slot = {'op': 'rmsnorm', 'gpu': 'h200', 'dtype': 'bf16', 'shape': {'batch': 1}}\n"
        "Registry.open(sys.argv[1]).lookup(**slot).rejected\n"
        "heavy = {'torch', 'numpy', 'sqlmodel', 'sqlalchemy', 'pydantic', 'typer', 'orjson'}\n"
        "lazy = {'json', 'hashlib', 'dataclasses', 'typing', 'collections', 'math'}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(lazy & light))\n"
    )
    command = [sys.executable, "-S", "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout == b"[] []\n", done.stderr
