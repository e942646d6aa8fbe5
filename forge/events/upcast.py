"""Reads old payloads as current ones: one pure step for each (type, version). Steps are chained and never deleted.

Stored bytes don't change. A step takes the payload of one schema version and returns that of the next.
"""

from collections.abc import Callable, Mapping

Payload = dict[str, object]
Step = Callable[[Payload], Payload]


def with_nothing(*names: str) -> Step:
    """Return the step that sets added fields to None, for payloads that lack them."""
    return lambda payload: {**dict.fromkeys(names), **payload}


UPCASTERS: dict[tuple[str, int], Step] = {
    ("TaskCreated", 1): with_nothing("admission"),
    ("PlanAccepted", 1): with_nothing("triage", "libraries"),
    ("PlanAccepted", 2): with_nothing(),  # what version 3 adds lies inside the triage, and is absent by default
    ("PromptRendered", 1): with_nothing("budget_tokens", "tokens"),
    ("CandidateSubmitted", 1): with_nothing("normalised_sha256"),
    ("CandidateRejected", 1): with_nothing("gates_sha256", "report_sha256", "reused_seq"),
    (
        "BenchmarkRecorded",
        1,
    ): with_nothing(),  # a workload's confirmation and replay are absent, which is their default
    ("BenchmarkFailed", 1): with_nothing(),
    ("ClaimAssessed", 1): with_nothing(),  # version 2 adds a verdict, which no old payload has
    ("CandidateRejected", 2): with_nothing("simulated"),
    ("CandidateVerified", 1): with_nothing("gates_sha256", "reused_seq"),
    ("CandidateVerified", 2): with_nothing(),  # version 3 adds a gate's verdict `not asked`, which no old payload has
    ("WorkRefused", 1): with_nothing(),  # version 2 adds what can be asked for: a call, which no old payload has
}
"""Steps by (type, version); each leads to version + 1."""


def upcast(
    type_name: str,
    schema_version: int,
    payload: Payload,
    *,
    to_version: int,
    steps: Mapping[tuple[str, int], Step] = UPCASTERS,
) -> Payload:
    """Bring `payload` from `schema_version` to `to_version`; raise KeyError if a step is missing."""
    for version in range(schema_version, to_version):
        payload = steps[type_name, version](dict(payload))
    return payload
