"""Compares the gates and files of accepted verifications with those of the same judge, and with what was timed."""

from collections.abc import Iterator

from forge.ledger.audit.differences import Difference
from forge.ledger.audit.samples import Document

_ALWAYS = frozenset(
    {
        *("sources", "signature", "replay", "numerics", "determinism", "scales", "aliasing", "sizes"),
        *("state", "mutation", "bounds", "own_tests"),
    }
)
"""Gates that every judge so far asked of every candidate that it accepted."""
_BY_MACHINE = frozenset({"plan", "threads", "sanitizer"})
"""Questions whose guests another machine or policy may not have."""


class GateLists:
    """The gates of each judge, by operation, language and platform, as its first accepted verification has them."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], tuple[int, frozenset[str]]] = {}

    def differences(self, seq: int, event: Document, task: Document) -> Iterator[Difference]:
        """Yield what an accepted verification lacks: gates, or an error within the bound."""
        names = frozenset(gate["name"] for gate in event["gates"])
        if missing := sorted(_ALWAYS - names):
            yield "gates", "every gate that each judge asks", f"none of {', '.join(missing)}"
        about = (task["op"], task["inputs_sha256"], task["language"], task["target"]["platform"])
        judge = (event.get("gates_sha256"), *about)
        asked = names - _BY_MACHINE
        before, known = self._first.setdefault((*judge, event["simulated"]), (seq, asked))
        if asked != known:
            yield "gates", f"those of event {before}, by the same judge: {sorted(known)}", str(sorted(asked))
        for place, errors in enumerate(event["workloads"]):
            if not errors["bound_used"] <= 1:
                yield f"workloads[{place}].bound_used", "at most 1", repr(errors["bound_used"])


def plan_differences(recorded: Document, listing: Document | None) -> Iterator[Difference]:
    """Yield the launch plan that was timed, if it isn't among the files that the verification kept."""
    replay = recorded.get("replay")
    kept = [one["sha256"] for one in listing["files"]] if listing is not None else []
    if replay is not None and replay["plan_sha256"] not in kept:
        yield "replay.plan_sha256", "a launch plan that the verification kept", replay["plan_sha256"]
