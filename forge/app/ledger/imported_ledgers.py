"""Lists imported ledgers with their promotions, which are evidence and no kernels of this workspace."""

from collections.abc import Mapping

import orjson

from forge.app.plain_events import HasEvents
from forge.ledger.statements import SELECT_FOREIGN_OF_TYPE

Data = dict[str, object]


def imported(home: HasEvents) -> list[Data]:
    """Return each imported ledger with its promotions, which are evidence and no kernels of this workspace."""
    latest = {one.event["foreign_ledger_id"]: one.event for one in home.events("LedgerImported")}
    return [
        {
            "ledger_id": ledger_id,
            "origin": one["origin"],
            "size": one["size"],
            "root": one["root_hash"],
            "key": one["verifier_key"],
            "promotions": _promotions(home, ledger_id),
        }
        for ledger_id, one in latest.items()
    ]


def _promotions(home: HasEvents, ledger_id: str) -> list[Data]:
    ended = _ended(home, ledger_id)
    invalid = {payload.get("benchmark_seq") for _, _, payload in _foreign(home, ledger_id, "BenchmarkInvalidated")}
    return [
        {
            "seq": seq,
            "recorded_at": recorded_at,
            "kernel_id": str(payload.get("kernel_id")),
            "candidate": payload.get("candidate"),
            "status": _status(
                ended.get(payload.get("kernel_id")), is_invalid=payload.get("benchmark_seq") in invalid
            ),
        }
        for seq, recorded_at, payload in _foreign(home, ledger_id, "KernelPromoted")
    ]


def _ended(home: HasEvents, ledger_id: str) -> Mapping[object, str]:
    """Return kernel -> what became of it there; of several events the most serious one."""
    ended: dict[object, str] = {}
    for kind, state in (
        ("KernelDeprecated", "deprecated"),
        ("ReplicationRecorded", "not_replicated"),
        ("KernelRevoked", "revoked"),
    ):
        for _, _, payload in _foreign(home, ledger_id, kind):
            if payload.get("outcome", "contradicted") == "contradicted":
                ended[payload.get("kernel_id")] = state
    return ended


def _status(ended: str | None, *, is_invalid: bool) -> str:
    """Return a kernel's status there; a revocation is more serious than a withdrawn benchmark."""
    return "evidence_invalid" if is_invalid and ended != "revoked" else ended or "promoted"


def _foreign(home: HasEvents, ledger_id: str, kind: str) -> list[tuple[int, str, Data]]:
    """Return place, time and payload of another ledger's events of one type, which a newer Forge may have written."""
    rows = home.rows(SELECT_FOREIGN_OF_TYPE, (ledger_id, kind))
    return [(seq, recorded_at, orjson.loads(payload)) for seq, recorded_at, payload in rows]
