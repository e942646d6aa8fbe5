"""Computes what measurements of models state again, from the stored times and what the model's process said.

A prediction is taken as recorded: it follows from the evidence of the registry's snapshot, which isn't stored. So is
each used kernel's speedup.
"""

import hashlib
import json
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.payload import canonical_text, render
from forge.ledger.audit.report import MALFORMED_ERRORS, AuditProblem
from forge.ledger.audit.rule import within_band
from forge.ledger.audit.samples import Document, Times, ratio_of
from forge.ledger.audit.stored import stored_bytes, stored_document

TYPES = ("EnvironmentCaptured", "KernelPromoted", "ModelMeasured")
"""Types of the events that a check of models reads."""
_SIDES = ("own", "adopted", "control")
_REPEATED = ("own_error", "adopted_error", "equal_tokens")
"""Fields of a comparison that the model's process says."""
_OF_LINE = ("op", "backend", "kernel_id", "sha256", "reason", "hits")
"""Fields of a used kernel that the process's report says."""


class ModelNumbers:
    """The check of all measurements of models of one ledger, in one pass over its events in order."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._processors: dict[str, str] = {}
        """Environment -> its GPU, or `cpu`."""
        self._kernels: dict[str, tuple[str, str]] = {}
        """Kernel -> its operation and the digest of its source."""

    def problems(self, rows: Iterable[tuple[int, bytes, bytes]]) -> Iterator[AuditProblem]:
        """Yield a problem for each field that differs from what the samples give."""
        for seq, kind, payload in rows:
            try:
                yield from (AuditProblem(seq, *one) for one in self._of_event(kind, json.loads(payload)))
            except MALFORMED_ERRORS as error:
                yield AuditProblem(seq, "numbers", "a payload and samples of a known form", repr(error)[:200])

    def _of_event(self, kind: bytes, event: Document) -> list[Difference]:
        match kind:
            case b"EnvironmentCaptured":
                gpu = event["environment"]["gpu"]
                self._processors[event["env_sha256"]] = "cpu" if gpu is None else gpu["slug"]
            case b"KernelPromoted":
                source = next(file["sha256"] for file in event["files"] if file["path"] == "kernel.py")
                self._kernels[event["kernel_id"]] = event["task"]["op"], source
            case b"ModelMeasured":
                return [*self._of_measurement(event), *self._of_kernels(event["uses"])]
        return []

    def _of_measurement(self, event: Document) -> Iterator[Difference]:
        yield from differences(self._processors.get(event["env_sha256"]), event["gpu"], "gpu")
        content = stored_bytes(self._runs, event["samples_sha256"])
        policy = stored_document(self._runs, event["policy_sha256"])
        if content is None or policy is None:
            return  # the check of stored bytes reports it
        samples = json.loads(content)
        config = canonical_text(content.decode())[0]["facts"]["config"]  # type: ignore[index]  # JSON
        expected = stated(samples) | {"config_sha256": hashlib.sha256(render(config).encode()).hexdigest()}
        yield from differences(expected, event, "")
        conclusive = within_band(event["comparison"]["control"], policy["control_half_width"])
        yield from differences(conclusive, event["conclusive"], "conclusive")

    def _of_kernels(self, uses: list[Document]) -> Iterator[Difference]:
        for place, use in enumerate(uses):
            if use["kernel_id"] is not None:
                promoted = self._kernels.get(use["kernel_id"])
                yield from differences(promoted, (use["op"], use["sha256"]), f"uses[{place}].kernel_id")


def stated(samples: Mapping[str, Document]) -> Document:
    """Return every field of a measurement that follows from its samples; raise ValueError for uneven ones."""
    times, facts = samples["times_ns"], samples["facts"]
    own, adopted, control = (times[side] for side in _SIDES)
    ((pairs, rounds),) = {(len(side), len(pair)) for side in (own, adopted, control) for pair in side}
    shares = {(one["op"], one["kernel_id"]): one["share"] for one in facts["shares"]}
    lines = facts["lines"]
    uses = [
        {name: line[name] for name in _OF_LINE} | {"share": shares.get((line["op"], line["kernel_id"]), 0.0)}
        for line in lines
    ]
    replaced = {use["kernel_id"]: use["share"] for use in uses if use["backend"] != "fallback"}
    return {
        "process_pairs": pairs,
        "rounds": rounds,
        "generation": facts["generation"],
        "uses": uses,
        "comparison": {name: facts[name] for name in _REPEATED}
        | {
            "speedup": ratio_of(own, adopted),
            "control": ratio_of(own, control),
            "own_median_ns": _median(own),
            "adopted_median_ns": _median(adopted),
            "replaced_share": min(1.0, sum(replaced.values())),
        },
    }


def _median(times: Times) -> float:
    return statistics.median(time for pair in times for time in pair)
