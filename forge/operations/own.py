"""Users' own operations: turns a frozen contract into an `Operation` without running the reference file.

Their names contain a digest, so a name always means the same operation: a second one whose name has the same digits
is refused. Reading a ledger registers the operations that its tasks name.
"""

import math
from collections.abc import Mapping

from forge.domain.digest import Digest, digest_of
from forge.domain.own_operation import BATCH, PREFIX, Constant, Contract, Operand, Result, Weight, sizes_at
from forge.domain.tensors import ITEMSIZE_BYTES, DType, ElementType, TensorSpec
from forge.errors import IntegrityError, UnknownName
from forge.operations.operation import Operation, OwnReference

_KNOWN: dict[str, Operation] = {}
SLUG_LIMIT = 40
"""Largest length of a slug in a name, so that identifiers stay within their limits."""


def own_name(contract: Contract) -> str:
    """Return `own_<slug>_<digest8>`. Files with the same syntax tree and the same inferred contract have one name."""
    return f"{PREFIX}{contract.slug[:SLUG_LIMIT]}_{_identity(contract)[:8]}"


def _identity(contract: Contract) -> Digest:
    """Return the whole digest of what a name stands for."""
    if contract.syntax_sha256 is None:
        return digest_of(contract)
    return digest_of(contract.model_copy(update={"source_sha256": contract.syntax_sha256}))


def make_known(operation: Operation) -> None:
    """Register an operation, so that `find_own` returns it; raise IntegrityError if its name means another one.

    A name has 8 digits of a digest. An author who tries some 100,000 files finds two with the same ones.
    """
    known, own = _KNOWN.get(operation.name), operation.own
    if known is not None and known.own is not None and own is not None:
        before, now = _identity(known.own.contract), _identity(own.contract)
        if before != now:
            raise IntegrityError(
                f"two operations have the name {operation.name!r}, of digests {before} and {now}: expected one",
                hint="forge task create --name NAME, for one of both files",
            )
    _KNOWN[operation.name] = operation


def find_own(untrusted_name: str) -> Operation:
    """Return the own operation of that name, or raise UnknownName."""
    operation = _KNOWN.get(untrusted_name)
    if operation is None:
        raise UnknownName("operation", untrusted_name, [*_KNOWN, "one that a task of this workspace names"])
    return operation


def own_operation(contract: Contract, source: bytes) -> Operation:
    """Return a contract as an operation. A guest computes its answers; see forge/lab/reference/answers.py."""
    names = [f"{one.name}=" if one.keyword else one.name for one in contract.arguments if not _within(one)]
    return Operation(
        name=own_name(contract),
        summary=_summary(contract),
        axes=tuple(contract.shape),
        inputs=(*(_operand(one) for one in contract.tensors), *(_weight(one) for one in contract.weights)),
        scalars={},
        outputs=tuple(_result(one, place, contract) for place, one in enumerate(contract.results)),
        dtypes=(contract.dtype,),
        signature=f"{contract.entry}({', '.join(names)})",
        reference=_asked_elsewhere,
        oracle=_asked_elsewhere,
        numerics=_numerics(contract),
        bytes_moved=lambda shape, dtype: _written_bytes(contract, shape, dtype),
        flops=lambda _: 0,
        workloads=(contract.shape,),
        row_axis=BATCH,
        reduced_axis=BATCH,
        specials="unspecified",
        layouts=("contiguous",),
        relations=(),
        still=contract.still,
        own=OwnReference(contract, source),
    )


def _summary(contract: Contract) -> str:
    """Return the summary: the wanted operation, and the entry points that kernel.py may have."""
    file = f"the reference file's {contract.entry}, frozen as {contract.source_sha256[:12]}"
    named = ", with its keywords and the keys of its results" if _has_names(contract) else ""
    plain = f"a function that takes the reference's arguments in order{named}"
    if contract.form == "function":
        return f"{file}; the entry point is {plain}"
    then = ", then the state dict's tensors" if contract.weights else ""
    return f"{file}; the entry point is a class like it, with the same state dict (ModelNew), or {plain}{then}"


def _has_names(contract: Contract) -> bool:
    return any(one.keyword for one in contract.arguments) or any(one.key for one in contract.results)


def _within(one: Operand | Constant) -> bool:
    return isinstance(one, Operand) and bool(one.within)


def _asked_elsewhere(*_: object) -> tuple[()]:
    raise AssertionError("a reference file never runs in this process: bind the operation to a guest first")


def _operand(one: Operand) -> TensorSpec:
    return TensorSpec(name=one.name, axes=one.axes, element=one.element)


def _weight(one: Weight) -> TensorSpec:
    return TensorSpec(name=one.names[0], axes=tuple(map(str, one.sizes)), element=one.element)


def _result(one: Result, place: int, contract: Contract) -> TensorSpec:
    name = "output" if len(contract.results) == 1 else f"output_{place}"
    return TensorSpec(name=name, axes=one.axes, element=one.element)


def _written_bytes(contract: Contract, shape: Mapping[str, int], dtype: DType) -> int:
    """Return the bytes written. Forge doesn't know how much of its inputs foreign code reads, so only these count."""
    return sum(math.prod(sizes_at(one.axes, shape)) * _itemsize(one.element, dtype) for one in contract.results)


def _itemsize(element: ElementType | None, dtype: DType) -> int:
    return ITEMSIZE_BYTES[element or dtype]


def _numerics(contract: Contract) -> str:
    errors = ", ".join(f"{one.error:.3g}" for one in contract.results)
    if contract.wide:
        narrowed = any(one.local is not None for one in contract.results)
        follows = " Where values are small, so is the bound: it follows each value." if narrowed else ""
        return (
            "The oracle is the reference file itself, run in fp64 on the inputs as given. The bound is measured: the "
            f"reference's own error in {contract.dtype}, over the root mean square of the exact values, is at most "
            f"{errors}. docs/numerics.md has the factors.{follows}"
        )
    return (
        f"The reference doesn't run in fp64, so it is its own oracle in {contract.dtype}, with a wider tolerance; "
        "docs/numerics.md has it."
    )


def described(contract: Contract) -> Mapping[str, object]:
    """Return everything that was inferred, for the user to confirm."""
    return {"op": own_name(contract), **contract.model_dump(mode="json")}
