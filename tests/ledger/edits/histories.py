"""Histories that are consistent in themselves: cut off, rewritten, exchanged for another, signed by another key."""

import base64
import json
import shutil
from collections.abc import Callable

from forge.domain.digest import canonical
from forge.ledger.audit.history import audit
from forge.ledger.chain import StoredRow
from forge.ledger.signatures.signing import SigningKey, checkpoint_text, log_name, signed_note
from tests.cli.asking import ask
from tests.ledger.edits.copy import NEW_ID, Copy, Edit, Rows

ELSEWHERE = "it is consistent, and what would contradict it was taken away with it"
UNSIGNED = "no checkpoint covers the event that is gone"
OTHER_ID = "01a2ffff-ffff-7fff-bfff-ffffffffffff"
ATTACKER = bytes(range(32))
OF_SIGNATURES = ("CheckpointPublished", "LedgerKeyRotated")


def _unsigned(rows: Rows) -> Rows:
    """Without what only the key can say, and without what another ledger's key said of rows beside it."""
    return [row for row in rows if row.type not in OF_SIGNATURES]


def _edited(rows: Rows) -> Rows:
    changed = [row._replace(payload=row.payload.replace('"author":"forge', '"author":"eve o')) for row in rows]
    assert next(place for place, row in enumerate(rows) if row != changed[place]) == 5
    return changed


def _of_other_bytes(rows: Rows) -> Rows:
    """The promotion offers the author's benchmark in the place of the kernel that was judged."""
    place = next(at for at, row in enumerate(rows) if row.type == "KernelPromoted")
    payload = json.loads(rows[place].payload)
    files = {file["path"]: file for file in payload["files"]}
    files["kernel.py"] |= {name: files["bench.py"][name] for name in ("sha256", "size_bytes")}
    return [*rows[:place], rows[place]._replace(payload=canonical(payload).decode()), *rows[place + 1 :]]


def _judged(**fields: object) -> Callable[[Rows], Rows]:
    """Other fields in the verification that the promotion stands on."""

    def change(rows: Rows) -> Rows:
        place = next(at for at, row in enumerate(rows) if row.type == "CandidateVerified")
        payload = canonical(json.loads(rows[place].payload) | fields).decode()
        return _unsigned([*rows[:place], rows[place]._replace(payload=payload), *rows[place + 1 :]])

    return change


def _inserted(rows: Rows) -> Rows:
    return [*rows[:11], rows[10]._replace(event_id=NEW_ID.format(11), idempotency_key=None), *rows[11:]]


def _reordered(rows: Rows) -> Rows:
    first, second = (row._replace(recorded_at=rows[4].recorded_at) for row in rows[3:5])
    return [*rows[:3], second, first, *rows[5:]]


def _rewritten(change: Callable[[Rows], Rows], *, alone: bool = True) -> Callable[[Copy], None]:
    def act(copy: Copy) -> None:
        copy.write(change(copy.rows()))
        if alone:
            copy.unpublish()

    return act


def _renamed(copy: Copy) -> None:
    rows = _unsigned(copy.rows())
    ledger_id = json.loads(rows[0].payload)["ledger_id"]
    renamed = [
        row._replace(payload=row.payload.replace(ledger_id, OTHER_ID), stream=row.stream.replace(ledger_id, OTHER_ID))
        for row in rows
    ]
    copy.write(renamed, ledger_id=OTHER_ID)
    copy.unpublish()


def _signed_anew(copy: Copy) -> None:
    """An edit, the attacker's key in the first event, and a checkpoint by it."""
    rows = _unsigned(_edited(copy.rows()))
    opened = json.loads(rows[0].payload)
    opened["public_key"] = _public(opened)
    copy.write([rows[0]._replace(payload=canonical(opened).decode()), *rows[1:]])
    _sign(copy)
    copy.unpublish()


def _tail_of_an_adopted_key(copy: Copy) -> None:
    """Everything after the first key's last checkpoint of its own written anew, under an adopted key."""
    rows = copy.rows()
    after = [row for row in _unsigned(rows[12:]) if row.type != "LedgerImported"]
    copy.sql("DELETE FROM foreign_event")
    copy.write([*rows[:12], _adoption(rows[:12]), *after])
    _sign(copy)
    copy.unpublish()


def _adoption(rows: Rows) -> StoredRow:
    opened = json.loads(rows[0].payload)
    payload = canonical({"ledger_id": opened["ledger_id"], "public_key": _public(opened)}).decode()
    return rows[0]._replace(
        type="LedgerKeyAdopted",
        payload=payload,
        actor="cli:eve",
        event_id=NEW_ID.format(0),
        recorded_at=rows[-1].recorded_at,
        idempotency_key=None,
    )


def _key(opened: dict[str, str]) -> SigningKey:
    return SigningKey(log_name(opened["origin"], opened["ledger_id"]), ATTACKER)


def _public(opened: dict[str, str]) -> str:
    return base64.b64encode(_key(opened).public).decode()


def _sign(copy: Copy) -> None:
    """Append the attacker's checkpoint over the rows there are."""
    rows = copy.rows()
    opened = json.loads(rows[0].payload)
    root, key = audit(copy.path).root, _key(opened)
    assert root is not None
    note = signed_note(checkpoint_text(key.name, len(rows), bytes.fromhex(root)), [key])
    document = {"ledger_id": opened["ledger_id"], "size": len(rows), "root_hash": root, "note": note}
    row = _adoption(rows)._replace(
        type="CheckpointPublished", payload=canonical(document).decode(), event_id=NEW_ID.format(len(rows))
    )
    copy.write([*rows, row])


def _cut(left: int, *, alone: bool, tree: bool = True) -> Callable[[Copy], None]:
    def act(copy: Copy) -> None:
        if tree:
            copy.write(copy.rows()[:left])
        else:
            copy.sql(f"DELETE FROM event WHERE seq > {left}")
        if 0 < left < 19:
            copy.sql("DELETE FROM foreign_event")
        if alone:
            copy.unpublish()

    return act


def _with_another(copy: Copy, *, whole: bool) -> None:
    """A young ledger of the same origin in the place of this one."""
    other = copy.home / "other"
    assert ask("init", other, "--origin", "kernels/example").status == 0
    shutil.move(other / "kernel_registry.db", copy.path)
    if whole:
        shutil.rmtree(copy.runs)
        shutil.move(other / "forge_runs", copy.runs)
        copy.unpublish()


def _flipped_signature(copy: Copy) -> None:
    rows = copy.rows()
    place = max(at for at, row in enumerate(rows) if row.type == "CheckpointPublished")
    payload = json.loads(rows[place].payload)
    note = payload["note"]
    payload["note"] = note[:-12] + ("A" if note[-12] != "A" else "B") + note[-11:]
    copy.write([*rows[:place], rows[place]._replace(payload=canonical(payload).decode()), *rows[place + 1 :]])


def _other_size(copy: Copy) -> None:
    rows = copy.rows()
    place = max(at for at, row in enumerate(rows) if row.type == "CheckpointPublished")
    payload = json.loads(rows[place].payload)
    payload["size"] -= 1
    copy.write([*rows[:place], rows[place]._replace(payload=canonical(payload).decode()), *rows[place + 1 :]])


def _adopted(copy: Copy) -> None:
    rows = copy.rows()
    copy.write([*rows, _adoption(rows)])


def _adopted_and_signed(copy: Copy) -> None:
    _adopted(copy)
    _sign(copy)


TRUNCATION = (
    Edit("the last event, and everything beside the ledger gone", _cut(-1, alone=True), "nothing", UNSIGNED),
    Edit("signed events, and the published checkpoint left", _cut(13, alone=False)),
    Edit("signed events, and everything beside the ledger gone", _cut(13, alone=True), "kept", ELSEWHERE),
    Edit("rows of which the stored tree still knows", _cut(15, alone=True, tree=False)),
)
REWRITES = (
    Edit("an author replaced, every hash right, recorded checkpoints left", _rewritten(_edited)),
    Edit("an event put in, every hash right, recorded checkpoints left", _rewritten(_inserted)),
    Edit(
        "an author replaced, and no checkpoint left in it",
        _rewritten(lambda rows: _unsigned(_edited(rows))),
        "kept",
        ELSEWHERE,
    ),
    Edit(
        "events reordered, and no checkpoint left in it",
        _rewritten(lambda rows: _unsigned(_reordered(rows))),
        "kept",
        ELSEWHERE,
    ),
    Edit(
        "a promotion of other bytes, and no checkpoint left in it",
        _rewritten(lambda rows: _unsigned(_of_other_bytes(rows))),
    ),
    Edit(
        "a promotion of what ran on a substitute, and no checkpoint left in it",
        _rewritten(_judged(simulated=True)),
    ),
    Edit(
        "a promotion on a judgement that reuses none, and no checkpoint left in it",
        _rewritten(_judged(reused_seq=3)),
    ),
    Edit(
        "a promotion of what an unknown machine judged, and no checkpoint left in it",
        _rewritten(_judged(env_sha256="ab" * 32)),
    ),
    Edit("an author replaced, and the whole signed by another key", _signed_anew, "kept", ELSEWHERE),
    Edit("the ledger under another id", _renamed, "kept", ELSEWHERE),
    Edit("all after an old checkpoint, signed by a key that was adopted", _tail_of_an_adopted_key, "kept", ELSEWHERE),
)
SWAPPED = (
    Edit(
        "ledger and runs of another workspace",
        lambda copy: _with_another(copy, whole=True),
        "kept",
        "it is a sound ledger, of another id",
    ),
    Edit("the ledger alone, beside what this one published", lambda copy: _with_another(copy, whole=False)),
)
SIGNATURES = (
    Edit("a recorded signature changed by one letter", _flipped_signature),
    Edit("a recorded checkpoint of another size", _other_size),
    Edit(
        "a key adopted at the end",
        _adopted,
        "nothing",
        "the owner of the file may adopt a key; nothing vouches for it, and it has signed nothing",
    ),
    Edit(
        "a key adopted at the end, and a checkpoint signed by it",
        _adopted_and_signed,
        "kept",
        "a lost key is replaced so; only the key that is trusted tells that it wasn't lost",
    ),
    Edit(
        "the private key and the signer's memory taken away",
        lambda copy: shutil.rmtree(copy.home / "keys"),
        "nothing",
        "a copy that is given away has none",
    ),
)
