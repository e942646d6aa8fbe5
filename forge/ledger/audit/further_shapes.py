"""Compares what is recorded of a task's further shapes with its samples and the rule, independent of the pipeline."""

from collections.abc import Iterator, Sequence

from forge.ledger.audit.differences import Difference, differences
from forge.ledger.audit.rule import baseline_used, reason_differences, unmet_by_measurement
from forge.ledger.audit.samples import Document, first_and_confirmation, workload
from forge.ledger.audit.whole_measurements import part_differences

_OWN = ("run_id", "attempt", "candidate", "task_id", "verified_seq", "env_sha256", "policy_sha256")
"""Fields that a measurement at a further shape shares with its benchmark."""


def shape_differences(
    event: Document, task: Document, policy: Document | None, samples: Document | None
) -> Iterator[Difference]:
    """Yield each field of a ShapeTimed that differs from what its samples and the rule give."""
    recorded = event["timing"]
    if event["shape"] not in task.get("further_shapes", ()):
        yield "shape", "a further shape of the task", str(event["shape"])
    if recorded is None:
        if event["reason"] is None:
            yield "reason", "why there are no figures", "None"
        elif event["reason"]["code"] == "NOISE_TOO_HIGH" and samples is not None and _usable(samples):
            yield "timing", "figures, for every time is above zero", "None"
        return
    if samples is not None:
        yield from differences(workload(samples, recorded), recorded, "timing")
        yield from differences(1, len(samples["attempts"]), "samples.attempts")
        yield from part_differences(samples, policy)
    used = baseline_used(task, recorded)
    said = {"baseline_used": used, "shape": recorded["shape"], "samples_sha256": recorded["samples_sha256"]}
    yield from differences(said, event, "")
    if policy is not None:
        stated = event["reason"]["code"] if event["reason"] else None
        yield from reason_differences(task, policy, recorded, used, stated)


def _usable(samples: Document) -> bool:
    first, again = first_and_confirmation(samples)
    return first.usable and (again is None or again.usable)


def unnamed_evidence(
    task: Document, further: Sequence[tuple[str, Document]], verified: Document
) -> Iterator[Difference]:
    """Yield which evidence a promotion lacks: an event for each further shape in order, a verification at each."""
    timed = [event["shape"] for _, event in further]
    yield from differences(list(task.get("further_shapes", ())), timed, "further_seqs")
    for shape in (task["shape"], *timed):
        if shape not in verified["shapes_verified"]:
            yield "promotion rule 'verified shape'", f"a verification at {shape}", "not met by the evidence named"


def proven_shapes(
    task: Document,
    benchmark: Document,
    further: Sequence[tuple[str, Document]],
    policy: Document | None,
    verified: Document,
) -> list[Document]:
    """Return the further shapes that a promotion is for; raise ValueError for evidence of another candidate."""
    found = []
    for kind, event in further:
        if kind != "ShapeTimed" or any(event[name] != benchmark[name] for name in _OWN):
            raise ValueError(f"a {kind} that is no measurement of the benchmark's candidate at a further shape")
        if event["reason"] is None and event["timing"] is not None:
            measured = {**event, "workloads": [event["timing"]]}
            if policy is None or not any(unmet_by_measurement(task, policy, measured, verified)):
                found.append(event["shape"])
    return found
