"""Phase 1 for an operation of the user's own: freeze a reference file that was found fit to judge by."""

import random
from collections.abc import Sequence

from forge.domain.digest import canonical, digest_of, sha256
from forge.domain.own_operation import BATCH, Contract
from forge.domain.policy import Policy
from forge.domain.task import HeldOut, Task
from forge.domain.tensors import DTYPES, TORCH_NAMES, ElementType
from forge.errors import UsageError
from forge.events import TaskCreated
from forge.lab.reference.binding import FACTOR
from forge.lab.reference.describe import Declared
from forge.lab.reference.infer import Inferred
from forge.operations import baselines_of
from forge.pipeline.create import Terms, require_strength
from forge.pipeline.outcome import Outcome

DECLARED: tuple[ElementType, ...] = (*DTYPES, "int32", "int64")
"""What a declared operand may be made of; floats are of the task's type whatever is said."""
MOST_AXES, NAME_LIMIT = 8, 64


def create_own(inferred: Inferred, terms: Terms, *, policy: Policy, rng: random.Random) -> tuple[Task, Outcome]:
    """Freeze a task that is judged against the file; raise WeakTask if it can't tell wrong from right."""
    require_strength(inferred.admission, hint="forge task create --help")
    operation, contract = inferred.operation, inferred.contract
    held_out = HeldOut(salt=rng.randbytes(32).hex(), shapes=inferred.held_out)
    task = Task.model_validate(
        {
            **terms.fields(),
            "op": operation.name,
            "shape": {BATCH: contract.batch},
            "baselines": baselines_of(operation, policy),
            "scalars": {},
            "reference_sha256": contract.source_sha256,
            "inputs_sha256": sha256(canonical(contract)),
            "tolerance_sha256": digest_of(tolerance_of(contract, policy)),
            "held_out_sha256": digest_of(held_out),
            "policy_sha256": digest_of(policy),
        }
    )
    created = TaskCreated(task_id=task.task_id, task=task, admission=inferred.admission)
    blobs = (inferred.source, canonical(contract), canonical(held_out))
    return task, Outcome(events=(created,), files={"task.json": canonical(task)}, blobs=blobs)


def tolerance_of(contract: Contract, policy: Policy) -> dict[str, object]:
    """What the bound is made of."""
    narrowed = [one.local.model_dump(mode="json") if one.local else None for one in contract.results]
    return {
        "oracle": "fp64" if contract.wide else contract.dtype,
        "errors": [one.error for one in contract.results],
        "factor": FACTOR,
        "multiples": [policy.tolerance_baseline_multiple, policy.tolerance_accumulate_multiple],
        **({"locals": narrowed} if any(narrowed) else {}),
    }


def parse_operands(untrusted_texts: Sequence[str]) -> tuple[Declared, ...]:
    """Read `x=fp32[16,64]` and `index=int64[16]:0..99`; raise UsageError."""
    return tuple(_parse_operand(text) for text in untrusted_texts)


def _parse_operand(untrusted_text: str) -> Declared:
    name, _, rest = untrusted_text.partition("=")
    form, _, limits = rest.partition(":")
    element, opened, sizes_text = form.partition("[")
    known = next((one for one in DECLARED if one == element), None)
    sizes = sizes_text.removesuffix("]").split(",")
    plain = untrusted_text.isascii() and name.isidentifier() and len(name) <= NAME_LIMIT
    fits = plain and known and opened and sizes_text.endswith("]") and len(sizes) <= MOST_AXES
    if not (fits and known and all(one.isdecimal() and 1 <= int(one) <= 2**31 for one in sizes)):
        raise _bad_operand(untrusted_text)
    low, _, high = limits.partition("..")
    whole = known not in DTYPES
    if whole != (_is_whole(low) and _is_whole(high)) or (whole and int(low) > int(high)):
        raise _bad_operand(untrusted_text)
    return Declared(
        name=name,
        dtype=TORCH_NAMES[known],
        sizes=tuple(map(int, sizes)),
        low=int(low) if whole else None,
        high=int(high) if whole else None,
    )


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= 18


def _bad_operand(untrusted_text: str) -> UsageError:
    return UsageError(
        f"bad operand {untrusted_text[:200]!r}: expected name=TYPE[SIZES], as in x=fp32[16,64], with a range for "
        f"integers, as in index=int64[16]:0..99; types: {', '.join(DECLARED)}"
    )
