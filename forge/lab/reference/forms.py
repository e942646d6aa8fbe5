"""Makes the contract that a description alone gives: forms, before any value is examined."""

import re

from forge.domain.digest import sha256
from forge.domain.own_operation import Constant, Contract, Generated, Operand, Result, Weight
from forge.domain.source_syntax import syntax_sha256
from forge.domain.tensors import INTEGERS, TORCH_NAMES, ElementType
from forge.lab.reference.describe import Description, SubmittedReference, refusal

FLOATS = frozenset({"float32", "float16", "bfloat16", "float64"})
"""Names of torch's types that count as floats of a reference file."""
_ELEMENTS = {name: element for element, name in TORCH_NAMES.items()}


def slug_of(name: str) -> str:
    """Return a file's or a function's name as an operation's: `1_Square_matrix.py` -> `square_matrix`."""
    words = re.sub(r"[^a-z0-9]+", "_", name.lower().removesuffix(".py")).strip("_")
    return re.sub(r"^[0-9_]+", "", words)[:40].strip("_") or "reference"


def contract_of(question: SubmittedReference, said: Description, *, seed: int) -> Contract:
    """Return the contract of the description alone; families, errors and batches are added later."""
    arguments = _arguments(question, said)
    tensors = [one for one in arguments if isinstance(one, Operand)]
    return Contract(
        slug=question.slug or slug_of(said.entry if said.form == "function" else question.name),
        source_sha256=sha256(question.source),
        syntax_sha256=syntax_sha256(question.source),
        form=said.form,
        entry=said.entry,
        init=said.init,
        init_named=said.init_named,
        seed=seed,
        dtype=question.dtype,
        arguments=tuple(arguments),
        weights=tuple(
            Weight(
                names=one.names,
                element=element_of(one.dtype, question, f"the state {one.names[0]!r}"),
                sizes=one.sizes,
                parameter=one.parameter,
            )
            for one in said.states
        ),
        results=tuple(
            Result(
                key=one.key,
                element=element_of(one.dtype, question, "a result"),
                sizes=one.sizes,
                borrowed=one.borrowed,
            )
            for one in said.results
        ),
        returned=said.returned,
        batch=tensors[0].sizes[0] if tensors[0].sizes else 1,
    )


def _arguments(question: SubmittedReference, said: Description) -> list[Operand | Constant]:
    arguments: list[Operand | Constant] = []
    for one in said.arguments:
        if one.literal is not None:
            arguments.append(Constant(name=one.name, literal=one.literal, keyword=one.keyword))
        else:
            assert one.dtype is not None
            assert one.sizes is not None
            element = element_of(one.dtype, question, f"the argument {one.name!r}")
            arguments.append(
                Operand(
                    name=one.name,
                    element=element,
                    sizes=one.sizes,
                    drawn=Generated(structure="not looked at"),
                    keyword=one.keyword,
                    within=one.within,
                )
            )
    return arguments


def element_of(dtype: str, question: SubmittedReference, what: str) -> ElementType | None:
    """Return the element type for torch's name; None for floats, which all have the task's type."""
    if dtype in FLOATS:
        return None
    element = _ELEMENTS.get(dtype)
    if element not in INTEGERS:
        raise refusal(
            question.name, f"{what} is {dtype}: expected floats of 16 bits or more, integers or truth values"
        )
    return element
