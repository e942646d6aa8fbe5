"""Compares candidates with their machine's measured ceilings: bytes and operations per second."""

import orjson

from forge.app.audit.answer import Answer, Cell, Filter, Named, named_rows, where
from forge.app.plain_events import HasEvents
from forge.domain.device import Ceilings
from forge.domain.shape_slug import shape_slug
from forge.domain.tensors import parse_dtype
from forge.errors import UsageError
from forge.ledger.plain_rows import PlainEvent
from forge.operations import OPERATIONS

COLUMNS = (
    *("op", "dtype", "shape", "flop_per_byte", "gflop_per_s", "gb_per_s", "floor_fraction", "median_ns", "verdict"),
    *("source", "kernel_id", "candidate", "benchmark_seq"),
)
TIMED = """
    SELECT latest.op, latest.dtype, latest.shape, latest.candidate, max(latest.seq) AS seq,
           latest.candidate_median_ns, latest.floor_fraction, latest.verdict, latest.perf_key,
           latest.source,
           (SELECT kernel_id FROM kernels WHERE candidate = latest.candidate AND shape = latest.shape
            AND status = 'active' AND gpu = latest.gpu AND dtype = latest.dtype) AS kernel_id
    FROM latest_speedups AS latest WHERE {condition} AND latest.baseline_used
    GROUP BY latest.op, latest.dtype, latest.shape, latest.candidate ORDER BY 1, 2, 3, 4
"""
"""Query for the newest time of each candidate of a processor."""


def roofline(workspace: HasEvents, *, gpu: str, wanted: dict[Filter, str | None]) -> Answer:
    """Return each timed candidate of a processor at its arithmetic intensity, and the newest measured ceilings.

    Bytes are the least that must be moved, and operations are those of the catalogue. So a rate counts only the
    necessary work. Candidates for operations outside the catalogue are left out and counted.

    Raises UsageError if no ceilings of the processor are recorded.
    """
    with workspace.publication.tables() as connection:
        condition, values = where(connection, {"gpu": gpu, **wanted})
        rows = named_rows(connection, TIMED.format(condition=condition), values)
    placed = [_placed(row) for row in rows if row["op"] in OPERATIONS]
    keys = {str(row["perf_key"]) for row in rows}
    calibrated = _newest_ceilings(workspace, keys)
    if calibrated is None:
        raise UsageError(
            f"no measured ceilings of a machine on which {gpu!r} was timed: expected a recorded benchmark there",
            hint="forge ledger log --type DeviceCalibrated",
        )
    ceilings = Ceilings.model_validate(calibrated.event["ceilings"])
    return Answer(
        f"Roofline of {values['gpu']}",
        COLUMNS,
        tuple(placed),
        notes=(
            f"ceilings as measured in event {calibrated.seq}; {len(rows) - len(placed)} candidates left out, "
            "for their operation is in no catalogue",
            "floor_fraction: the least time that this machine allows over the time that was measured",
        ),
        shown=tuple(name for name in COLUMNS if name not in ("kernel_id", "benchmark_seq")),
        more={"gpu": values["gpu"], "calibrated_seq": calibrated.seq, "ceilings": ceilings.model_dump(mode="json")},
    )


def _placed(row: Named) -> tuple[Cell, ...]:
    operation, dtype = OPERATIONS[str(row["op"])], parse_dtype(str(row["dtype"]))
    shape: dict[str, int] = orjson.loads(str(row["shape"]))
    median_ns = float(str(row["candidate_median_ns"]))
    moved, flops = operation.bytes_moved(shape, dtype), operation.flops(shape)
    rates = (flops / moved, flops / median_ns, moved / median_ns)
    rest = (
        row["floor_fraction"],
        median_ns,
        *(row[name] for name in ("verdict", "source", "kernel_id", "candidate", "seq")),
    )
    return (operation.name, dtype, shape_slug(shape), *rates, *rest)


def _newest_ceilings(workspace: HasEvents, perf_keys: set[str]) -> PlainEvent | None:
    """Return the last ceilings measured on a machine of one of these kinds."""
    calibrated = [one for one in workspace.events("DeviceCalibrated") if one.event["perf_key"] in perf_keys]
    return calibrated[-1] if calibrated else None
