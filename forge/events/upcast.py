"""Old payloads, read as today's: one pure step per (type, version), chained, never deleted.

Stored bytes stay as they are; a step takes the payload of one schema version and gives that of the next.
"""

from collections.abc import Callable, Mapping

Payload = dict[str, object]
Step = Callable[[Payload], Payload]

UPCASTERS: dict[tuple[str, int], Step] = {}
"""(type, version) -> the step to version + 1. Empty as long as every type is at its first version."""


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
