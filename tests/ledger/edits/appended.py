"""Events that were added at the end with right places, hashes and tree: what only their content gives away."""

import json
from collections.abc import Callable
from typing import Any

from forge.domain.digest import canonical
from tests.ledger.edits.copy import NEW_ID, Copy, Edit

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


def _about_the_kernel(kind: str, to: Callable[[Any], dict[str, object]], **columns: object) -> Callable[[Copy], None]:
    """A person's word about the promoted kernel; `to` gives its own fields from the promotion."""

    def act(copy: Copy) -> None:
        promoted = copy.payload("KernelPromoted")
        own = {"kernel_id": promoted["kernel_id"], "family": promoted["family"], "reason": "a better one"}
        payload = canonical(own | to(promoted)).decode()
        row = copy.last("KernelPromoted")._replace(type=kind, payload=payload, actor="cli:eve", causation_id=None)
        copy.append(row, **columns)

    return act


def _revoked_on(*evidence: str) -> Callable[[Any], dict[str, object]]:
    return lambda _: {"severity": "withdrawn", "evidence": evidence}


def _withdrawn_for_another(copy: Copy) -> None:
    benchmark = copy.last("BenchmarkRecorded")
    named = {"candidate": json.loads(benchmark.payload)["candidate"], "benchmark_seq": benchmark.seq}
    payload = canonical(named | {"why": "the clock", "by": "cli:ada@lab"}).decode()
    copy.append(benchmark._replace(type="BenchmarkInvalidated", payload=payload, actor="cli:eve", causation_id=None))


APPENDED = (
    Edit("a promotion whose speedup is not that of its benchmark", _again("KernelPromoted", _forged)),
    Edit("a promotion with a version left out", _again("KernelPromoted", _skipped)),
    Edit("a promotion a second time, under the next number", _again("KernelPromoted", _renumbered)),
    Edit("a profile a second time", _again("ProfileCaptured", _same), "nothing", UNSIGNED),
    Edit(
        "a time before that of the event before",
        _again("ProfileCaptured", _same, recorded_at="2020-01-01T00:00:00.000000Z"),
    ),
    Edit(
        "a time that lies far ahead",
        _again("ProfileCaptured", _same, recorded_at="2099-01-01T00:00:00.000000Z"),
        "nothing",
        "no clock is at hand that both the writer and the reader trust",
    ),
    Edit("a cause that is no event", _again("ProfileCaptured", _same, causation_id=NEW_ID.format(99))),
    Edit("a key without a place in a batch", _again("ProfileCaptured", _same, idempotency_key="promote:x")),
    Edit("the second half of a batch", _again("ProfileCaptured", _same, idempotency_key="promote:x#1")),
    Edit("a run sealed again, as refused", _again("RunSealed", _set("outcome", to="rejected"))),
    Edit(
        "a kernel deprecated for one that doesn't exist",
        _about_the_kernel("KernelDeprecated", lambda _: {"superseded_by": "cpp_rmsnorm_cpu_fp32_b1_h8_v1"}),
    ),
    Edit(
        "a kernel deprecated for itself",
        _about_the_kernel("KernelDeprecated", lambda promoted: {"superseded_by": promoted["kernel_id"]}),
    ),
    Edit(
        "a revocation on an event with another hash",
        _about_the_kernel("KernelRevoked", _revoked_on(f"event:5:{'ab' * 32}")),
    ),
    Edit("a revocation by an agent", _about_the_kernel("KernelRevoked", _revoked_on(), actor="agent:a-model")),
    Edit("a benchmark withdrawn in another's name", _withdrawn_for_another),
    Edit("a 13th month", _again("ProfileCaptured", _same, recorded_at="2026-13-01T00:00:00.000000Z")),
    Edit("a 30th of February", _again("ProfileCaptured", _same, recorded_at="2026-02-30T00:00:00.000000Z")),
    Edit("a time without microseconds", _again("ProfileCaptured", _same, recorded_at="2026-02-03T00:00:00Z")),
    Edit("a benchmark by an agent", _again("BenchmarkRecorded", _same, actor="agent:a-model")),
    Edit("an actor of no class", _again("ProfileCaptured", _same, actor="root")),
    Edit("an unknown type", _again("ProfileCaptured", _same, type="KernelBlessed")),
    Edit("the stream of another", _again("ProfileCaptured", _same, stream="kernel:another")),
    Edit("schema version 99", _again("ProfileCaptured", _same, schema_version=99)),
    Edit(
        "a number beyond 64 bits",
        _again("CandidateSubmitted", lambda payload: payload["files"]["files"][0].update(size_bytes="9" * 30)),
    ),
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
