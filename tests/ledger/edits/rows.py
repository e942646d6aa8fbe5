"""Edits of rows that leave hashes as they were, or make some of them right again."""

import hashlib
from collections.abc import Callable

from forge.ledger.chain import event_hash
from tests.ledger.edits.copy import Copy, Edit

PLACE = 9
COLUMNS = {
    "seq": "4711",
    "event_id": "'01a20000-0000-7000-8000-ffffffffffff'",
    "stream": "'kernel:another'",
    "stream_version": "7",
    "type": "'BenchmarkErrored'",
    "schema_version": "2",
    "recorded_at": "'2020-02-02T02:02:02.020202Z'",
    "actor": "'system:elsewhere'",
    "correlation_id": "'another run'",
    "causation_id": "'01a20000-0000-7000-8000-ffffffffffff'",
    "idempotency_key": "'another#0'",
    "payload": "replace(payload, 'eager', 'torch')",
    "payload_sha256": "randomblob(32)",
    "prev_hash": "(SELECT event_hash FROM event WHERE seq = 3)",
    "event_hash": "(SELECT event_hash FROM event WHERE seq = 3)",
}


def _sql(script: str) -> Callable[[Copy], None]:
    return lambda copy: copy.sql(script)


def _rehashed(*, link: bool, digest: bool = True) -> Callable[[Copy], None]:
    """Replace an author, and make the row's own digests right; with `link`, the next row's link too."""

    def act(copy: Copy) -> None:
        row = copy.rows()[5]
        row = row._replace(payload=row.payload.replace('"author":"forge', '"author":"eve o'))
        if digest:
            row = row._replace(payload_sha256=hashlib.sha256(row.payload.encode()).digest())
        row = row._replace(event_hash=event_hash(row))
        assert row.payload != copy.rows()[5].payload
        with copy.unguarded() as connection:
            connection.execute(
                "UPDATE event SET payload = ?, payload_sha256 = ?, event_hash = ? WHERE seq = 6",
                (row.payload, row.payload_sha256, row.event_hash),
            )
            if link:
                connection.execute("UPDATE event SET prev_hash = ? WHERE seq = 7", (row.event_hash,))

    return act


def _exchanged(one: int, other: int) -> str:
    return (
        f"UPDATE event SET seq = 4711 WHERE seq = {one}; UPDATE event SET seq = {one} WHERE seq = {other};"
        f"UPDATE event SET seq = {other} WHERE seq = 4711;"
    )


ROWS = (
    *(
        Edit(f"another `{column}` in one row", _sql(f"UPDATE event SET {column} = {value} WHERE seq = {PLACE}"))
        for column, value in COLUMNS.items()
    ),
    Edit("a key taken away", _sql(f"UPDATE event SET idempotency_key = NULL WHERE seq = {PLACE}")),
    Edit("a payload cut short", _sql(f"UPDATE event SET payload = substr(payload, 1, 40) WHERE seq = {PLACE}")),
    Edit("an author replaced, the hash of the row right", _rehashed(link=False, digest=False)),
    Edit("an author replaced, both digests of the row right", _rehashed(link=False)),
    Edit("an author replaced, and the next row linked to it", _rehashed(link=True)),
    Edit("two neighbours exchanged", _sql(_exchanged(8, 9))),
    Edit("two rows far apart exchanged", _sql(_exchanged(3, 13))),
    Edit(
        "the contents of two rows exchanged",
        _sql(
            "CREATE TEMP TABLE t AS SELECT * FROM event WHERE seq IN (9, 11);"
            "UPDATE event SET (payload, payload_sha256) = (SELECT payload, payload_sha256 FROM t WHERE seq = 11) "
            "WHERE seq = 9; UPDATE event SET (payload, payload_sha256) = "
            "(SELECT payload, payload_sha256 FROM t WHERE seq = 9) WHERE seq = 11;"
        ),
    ),
    Edit("the first row deleted", _sql("DELETE FROM event WHERE seq = 1")),
    Edit("a row in the middle deleted", _sql("DELETE FROM event WHERE seq = 10")),
    Edit(
        "a row deleted and those after it moved up",
        _sql("DELETE FROM event WHERE seq = 10; UPDATE event SET seq = seq - 1 WHERE seq > 10"),
    ),
    Edit("every row deleted", _sql("DELETE FROM event")),
)
