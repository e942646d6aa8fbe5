"""Freezes a reference file of a user's own operation, so that candidates can be judged against it."""

import random

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.own_operation import Contract
from forge.domain.policy import Policy
from forge.domain.task import HeldOut, Task
from forge.events import TaskCreated
from forge.lab.reference.allowed_error import ERROR_FACTOR, ROUNDINGS
from forge.lab.reference.infer import Inferred
from forge.operations import baselines_of
from forge.pipeline.create import RequestedTerms, parse_least_domain
from forge.pipeline.outcome import Outcome
from forge.pipeline.weak_reference import require_strong


def create_own(
    inferred: Inferred, terms: RequestedTerms, *, policy: Policy, rng: random.Random
) -> tuple[Task, Outcome]:
    """Freeze a task that is judged against the file; raise WeakTask if it can't tell wrong answers from right."""
    require_strong(inferred)
    operation, contract = inferred.operation, inferred.contract
    shape = contract.shape
    domain = parse_least_domain(terms.untrusted_domain, operation, shape, *inferred.further)
    shapes = tuple(one for one in inferred.held_out if domain is None or domain.contains(one))
    held_out = HeldOut(salt=rng.randbytes(32).hex(), shapes=shapes)
    task = Task.model_validate(
        {
            **terms.fields(),
            "op": operation.name,
            "shape": shape,
            "further_shapes": inferred.further,
            "baselines": baselines_of(operation, policy),
            "scalars": {},
            "reference_sha256": contract.source_sha256,
            "inputs_sha256": sha256(canonical(contract)),
            "tolerance_sha256": digest_of(tolerance_of(contract, policy)),
            "held_out_sha256": digest_of(held_out),
            "policy_sha256": digest_of(policy),
            "domain": domain,
        }
    )
    created = TaskCreated(task_id=task.task_id, task=task, admission=inferred.admission)
    blobs = (inferred.source, canonical(contract), canonical(held_out), *terms.contender_sources)
    return task, Outcome(events=(created,), blobs=blobs)


def tolerance_of(contract: Contract, policy: Policy) -> dict[str, object]:
    """Return everything that the error bound depends on."""
    narrowed = [one.local.model_dump(mode="json") if one.local else None for one in contract.results]
    return {
        "oracle": "fp64" if contract.wide else contract.dtype,
        "errors": [one.error for one in contract.results],
        "factor": ERROR_FACTOR,
        "multiples": [policy.tolerance_baseline_multiple, policy.tolerance_accumulate_multiple],
        **({"locals": narrowed} if any(narrowed) else {}),
        **({"together": ROUNDINGS} if contract.wide and contract.dtype != "fp32" else {}),
    }
