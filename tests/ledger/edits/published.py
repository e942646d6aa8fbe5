"""Edits of what is published: documents, the snapshot behind the pointer, tables, files of kernels, the key."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from forge.domain.digest import canonical
from forge.ledger.signatures.signing import SigningKey
from tests.ledger.edits.copy import Copy, Edit, Found
from tests.ledger.edits.files import overwrite

DERIVED = "derived by design: nothing believes it, and forge ledger rebuild says what differed and replaces it"
ANOTHER_KEY = f"{SigningKey('kernels/example/x', bytes(32)).verifier}\n".encode()


def _published(name: str, act: Callable[[Path], object], found: Found = "--full", why: str = "") -> Edit:
    return Edit(name, lambda copy: [act(copy.registry), None][1], found, why)


def _kernel(registry: Path) -> Path:
    (folder,) = (registry / "kernels").iterdir()
    return folder


def _faster(path: Path) -> None:
    """Every ratio of a document."""
    text = path.read_text()
    assert "2.0" in text
    overwrite(path, text.replace("2.0", "9.62").encode())


def _row(registry: Path) -> None:
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        assert connection.execute("UPDATE benchmarks SET speedup = 9.62").rowcount
        connection.commit()


def _view(registry: Path) -> None:
    """What `forge audit sql` and the page of kernels would show."""
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        connection.execute("DROP VIEW leaderboard")
        connection.execute("CREATE VIEW leaderboard AS SELECT *, 9.62 AS speedup FROM kernels")
        connection.commit()


def _trigger(registry: Path) -> None:
    """What changes the rows that the next command adds."""
    change = "UPDATE kernels SET speedup = 9.62"
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        connection.execute(f"CREATE TRIGGER faster AFTER INSERT ON kernels BEGIN {change}; END")
        connection.commit()


def _behind(registry: Path) -> None:
    """Other rows in a file that is some events behind: the next command folds the rest on top of them."""
    ledger = registry.parent / "kernel_registry.db"
    with closing(sqlite3.connect(ledger)) as connection:
        query = "SELECT seq, lower(hex(event_hash)) FROM event ORDER BY seq DESC LIMIT 1 OFFSET 1"
        (last, head) = connection.execute(query).fetchone()
    _row(registry)
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        connection.execute("UPDATE cursor SET seq = ?, event_hash = ?", (last, head))
        connection.commit()


def _entry(registry: Path) -> None:
    """What the next publication would show."""
    with closing(sqlite3.connect(registry / "history.db")) as connection:
        change = "UPDATE kernel_documents SET lookup = replace(lookup, 'fp32', 'bf16')"
        assert connection.execute(change).rowcount
        connection.commit()


def _offered(**fields: object) -> Callable[[Path], None]:
    """Other fields of a kernel in the snapshot, under a pointer that names the new bytes."""

    def act(registry: Path) -> None:
        pointer = json.loads((registry / "current.json").read_bytes())
        content = json.loads((registry / pointer["snapshot"]).read_bytes())
        (kernel,) = content["kernels"]
        if not fields:
            content["kernels"] = []
        kernel |= fields
        head = json.dumps({name: content[name] for name in ("schema_version", "gpus", "slots")})[:-1]
        text = f'{head},"kernels":[\n{json.dumps(kernel) if fields else ""}\n]}}'.encode()
        digest = hashlib.sha256(text).hexdigest()
        name = f"lookup-{digest[:12]}.json"
        (registry / name).write_bytes(text)
        overwrite(registry / "current.json", canonical(pointer | {"snapshot": name, "sha256": digest}))

    return act


def _another_architecture(registry: Path) -> None:
    """A GPU of which a lookup for a family would say that it is like another one."""
    pointer = json.loads((registry / "current.json").read_bytes())
    text = (registry / pointer["snapshot"]).read_bytes()
    assert b'"gpus":{' in text
    text = text.replace(b'"gpus":{}', b'"gpus":{"h100":"sm_90"}', 1)
    digest = hashlib.sha256(text).hexdigest()
    name = f"lookup-{digest[:12]}.json"
    (registry / name).write_bytes(text)
    overwrite(registry / "current.json", canonical(pointer | {"snapshot": name, "sha256": digest}))


def _another_shape(registry: Path) -> None:
    """A second point, as far as a lookup can see proven."""
    pointer = json.loads((registry / "current.json").read_bytes())
    (kernel,) = json.loads((registry / pointer["snapshot"]).read_bytes())["kernels"]
    (point,) = kernel["points"]
    larger = {**point, "shape": {**point["shape"], "batch": 512}, "provisional": True}
    _offered(points=[point, larger])(registry)


def _document(name: str, change: Callable[[Any], object]) -> Callable[[Path], None]:
    def act(registry: Path) -> None:
        content = json.loads((registry / name).read_bytes())
        change(content)
        overwrite(registry / name, canonical(content))

    return act


def _in_entry(**fields: object) -> Callable[[Path], None]:
    """Other fields of the one entry in verified_kernels.json."""
    return _document("verified_kernels.json", lambda content: content["kernels"][0].update(fields))


def _verified_without_error(content: Any) -> None:
    content["kernels"][0]["verification"]["max_abs_error"] = 0.0


def _without_event(registry: Path) -> None:
    """Other words in a document that names no whole number, where no pointer says as of when it is."""
    (registry / "current.json").unlink()
    path = registry / "verified_kernels.json"
    content = json.loads(path.read_bytes())
    content["ledger"]["seq"] = float(content["ledger"]["seq"])
    content["kernels"][0]["verification"]["max_abs_error"] = 0.0
    overwrite(path, json.dumps(content).encode())


def _of_another_ledger(content: Any) -> None:
    content["ledger"]["ledger_id"] = "01a2ffff-ffff-7fff-bfff-ffffffffffff"


def _as_it_was(copy: Copy) -> None:
    """The registry as it was published when the ledger was opened, before anything was promoted."""
    (first, *_) = copy.rows()
    opened = {"event_hash": first.event_hash.hex(), "ledger_id": json.loads(first.payload)["ledger_id"], "seq": 1}
    change = {"kernels": [], "ledger": opened}
    _document("verified_kernels.json", lambda content: content.update(change))(copy.registry)


DOMAIN = {"axes": {"batch": {"multiple_of": 4}}, "relations": [], "layouts": None, "alignment_bytes": 1}

PUBLISHED = (
    _published("a figure in verified_kernels.json", lambda registry: _faster(registry / "verified_kernels.json")),
    _published("a figure in leaderboard.json", lambda registry: _faster(registry / "leaderboard.json")),
    _published("versions.json emptied", lambda registry: overwrite(registry / "versions.json", b"{}")),
    _published("a row in history.db", _row),
    _published("a kernel's entry in history.db", _entry),
    _published("a row in history.db, whose cursor is set back", _behind),
    _published("a view of history.db replaced", _view),
    _published("a trigger in history.db", _trigger),
    _published(
        "the pointer to the snapshot missing",
        lambda registry: (registry / "current.json").unlink(),
        "nothing",
        DERIVED,
    ),
    _published(
        "the snapshots emptied", lambda registry: [overwrite(one, b"{}") for one in registry.glob("lookup-*.json")]
    ),
    _published("a kernel's source edited", lambda registry: overwrite(_kernel(registry) / "kernel.py", b"# fast")),
    _published("a kernel's folder missing", lambda registry: shutil.rmtree(_kernel(registry)), "nothing", DERIVED),
    _published("history.db missing", lambda registry: (registry / "history.db").unlink(), "nothing", DERIVED),
    _published("a snapshot without the kernel", _offered()),
    _published("a kernel of another element type in the snapshot", _offered(dtype="bf16")),
    _published("a kernel in another language in the snapshot", _offered(language="triton")),
    _published(
        "shapes in the snapshot that no gate verified", _offered(verified=[{"batch": [1], "hidden_size": [8]}])
    ),
    _published("a point in the snapshot at a shape that was never timed", _another_shape),
    _published("another domain in the snapshot", _offered(domain=DOMAIN)),
    _published("a replication in the snapshot that no event has", _offered(replicated_seq=9)),
    _published("a later time of measurement in the snapshot", _offered(measured_at="2031-01-01T00:00:00.000000Z")),
    _published("an architecture in the snapshot that no event has", _another_architecture),
    _published("another source in the snapshot", _offered(sha256="0" * 64)),
    _published("a successor in the snapshot that no event names", _offered(superseded_by="cpp_rmsnorm_v9")),
    _published("a field in the snapshot that Forge doesn't write", _offered(blessed=True)),
    _published("an error in verified_kernels.json", _document("verified_kernels.json", _verified_without_error)),
    _published("a path in verified_kernels.json", _in_entry(source_path="kernel_registry/kernels/other/kernel.py")),
    _published("a status with its reason in verified_kernels.json", _in_entry(status="active", status_reason="fine")),
    _published("an error in verified_kernels.json, which names no event", _without_event),
    Edit("verified_kernels.json as it was before the promotion", _as_it_was, "--full"),
    _published(
        "a rank in leaderboard.json",
        _document("leaderboard.json", lambda content: content["slots"][0]["kernels"][0].update(rank=2)),
    ),
    _published("another ledger's id in the pointer", _document("current.json", _of_another_ledger)),
    _published("another note in the pointer", _document("current.json", lambda content: content.update(note="x"))),
    _published("another verifier key", lambda registry: overwrite(registry / "ledger.vkey", ANOTHER_KEY)),
    _published("a kernel's library edited", lambda registry: overwrite(_kernel(registry) / "libkernel.so", b"x")),
    _published(
        "the listing of a kernel's files edited",
        lambda registry: overwrite(_kernel(registry) / "artifact.json", b"{}"),
    ),
)
