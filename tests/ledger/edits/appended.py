"""Events that were added at the end with right places, hashes and tree: what only their content gives away."""

from collections.abc import Callable
from typing import Any

from tests.ledger.edits.copy import Copy, Edit

UNSIGNED = "no checkpoint covers it, and it says nothing that the writer wouldn't have recorded"


def _again(kind: str, change: Callable[[Any], object], **columns: object) -> Callable[[Copy], None]:
    return lambda copy: copy.append_again(kind, change, **columns)


def _same(_: Any) -> None:
    pass


def _set(*path: str, to: object) -> Callable[[Any], None]:
    def change(payload: Any) -> None:
        for name in path[:-1]:
            payload = payload[name]
        payload[path[-1]] = to

    return change


def _renumbered(payload: Any) -> None:
    payload["version"] = 2
    payload["kernel_id"] = payload["kernel_id"].replace("_v1", "_v2")


def _forged(payload: Any) -> None:
    """The next version of the kernel, six times as fast as it was measured."""
    _renumbered(payload)
    payload["speedup"]["ratio"] *= 6


def _skipped(payload: Any) -> None:
    payload["version"] = 7
    payload["kernel_id"] = payload["kernel_id"].replace("_v1", "_v7")


APPENDED = (
    Edit("a promotion whose speedup is not that of its benchmark", _again("KernelPromoted", _forged)),
    Edit("a promotion with a version left out", _again("KernelPromoted", _skipped)),
    Edit("a promotion a second time, under the next number", _again("KernelPromoted", _renumbered)),
    Edit("a profile a second time", _again("ProfileCaptured", _same), "nothing", UNSIGNED),
    Edit("a 13th month", _again("ProfileCaptured", _same, recorded_at="2026-13-01T00:00:00.000000Z")),
    Edit("a 30th of February", _again("ProfileCaptured", _same, recorded_at="2026-02-30T00:00:00.000000Z")),
    Edit("a time without microseconds", _again("ProfileCaptured", _same, recorded_at="2026-02-03T00:00:00Z")),
    Edit("a benchmark by an agent", _again("BenchmarkRecorded", _same, actor="agent:a-model")),
    Edit("an actor of no class", _again("ProfileCaptured", _same, actor="root")),
    Edit("an unknown type", _again("ProfileCaptured", _same, type="KernelBlessed")),
    Edit("the stream of another", _again("ProfileCaptured", _same, stream="kernel:another")),
    Edit("schema version 99", _again("ProfileCaptured", _same, schema_version=99)),
    Edit("a field left out", _again("ProfileCaptured", lambda payload: payload.pop("kind"))),
    Edit(
        "an environment that isn't its digest",
        _again("EnvironmentCaptured", _set("environment", "driver", to="another driver")),
    ),
    Edit(
        "a candidate that isn't its digest",
        _again("CandidateSubmitted", _set("files", "entry_point", to="another_name")),
    ),
)
