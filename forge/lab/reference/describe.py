"""Describes a reference file by the statement of a guest that ran it once; the host accepts only what it can parse.

Distrusts every field: names, sizes and literals become typed values here, or the file is refused.
"""

import ast
from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from pydantic import Field, StringConstraints, ValidationError

from forge.domain.digest import Value
from forge.domain.evidence import Isolation
from forge.domain.own_operation import Container, Literally, ResultKey, Sizes, StateName, Word
from forge.domain.policy import Policy
from forge.domain.tensors import TORCH_NAMES, DType, Shape
from forge.errors import ReferenceRefused
from forge.lab.calls.refusal import require_verdict
from forge.lab.job import STILL_S, WALL_PER_CPU_S
from forge.lab.reference.literals import parse_literal, require_form
from forge.lab.reference.packed import require_places
from forge.lab.reference.room import expected_room, most_set_bytes
from forge.languages import LANGUAGES
from forge.sandbox.limits import Limits
from forge.sandbox.log import harmless
from forge.sandbox.one_shot import run_one_shot
from forge.sandbox.reply import Refused
from forge.sandbox.stage import DESCRIBE, Program, Stage

DESCRIPTION_LIMIT_BYTES = 4 * 2**20
"""Size of a description in bytes, at most. Chosen; the host reads all of it, and a guest wrote it."""
LIMIT_S = 60.0
"""Processor seconds of a thread for one run of a reference with its initialisation; a slower one can't be used to
judge."""
TEXT_LIMIT = 400
"""Number of characters of a problem's description, at most. Chosen; a guest wrote the text, and an error shows it
whole."""
TorchName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{1,32}$")]

ProblemCode = Literal[
    "import",
    "init",
    "inputs",
    "forward",
    "no_entry",
    "no_tensor",
    "literal",
    "file",
    "network",
    "process",
    "memory",
    "room",
    "large",
    "device",
]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """An operand that is declared on the command line."""

    name: str
    dtype: str
    """Torch's name of the element type."""
    sizes: tuple[int, ...]
    low: float | None = None
    """Smallest value; an int for whole numbers. None: floats are normally distributed, truth values are random."""
    high: float | None = None
    """Largest value."""


Place = tuple[str, int]
"""One size of an operand: the operand's name, and the position of the size."""


@dataclass(frozen=True, kw_only=True)
class DeclaredAxis:
    """A name for sizes that are one axis, declared on the command line."""

    name: str
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class DeclaredRange:
    """A size that varies, declared on the command line."""

    place: Place
    low: int
    high: int


class DescribedTensor(Value):
    """A tensor's element type, by torch's name, and its sizes."""

    dtype: TorchName
    sizes: Sizes


class DescribedResult(DescribedTensor):
    """A tensor that the call returns, with its place in a dictionary if there is one."""

    key: ResultKey = ""
    borrowed: bool = False
    """Whether it lies in the memory of an operand or of the module."""


class DescribedArgument(Value):
    """A tensor, or a value as its literal."""

    name: Word
    keyword: bool = False
    """Whether it is passed by its name."""
    within: Container = ""
    """Name of the argument that a tensor lies in."""
    literal: Literally | None
    dtype: TorchName | None
    sizes: Sizes | None


class DescribedState(DescribedTensor):
    """A tensor of the state dict."""

    names: Annotated[tuple[StateName, ...], Field(min_length=1, max_length=64)]
    parameter: bool


class Description(Value):
    """The guest's description, parsed."""

    form: Literal["model", "function"]
    entry: Word
    init: Literally
    init_named: Literally = ""
    arguments: Annotated[tuple[DescribedArgument, ...], Field(max_length=64)]
    states: Annotated[tuple[DescribedState, ...], Field(max_length=4096)]
    results: Annotated[tuple[DescribedResult, ...], Field(max_length=64)]
    returned: Literally
    """Nesting of the results in tuples and dictionaries, as a literal with `...` for each result."""
    generator: bool


class Problem(Value):
    """The reason why the file can't be described."""

    code: ProblemCode
    text: str


@dataclass(frozen=True, kw_only=True)
class SubmittedReference:
    """A reference file as the user submits it."""

    source: bytes
    name: str
    dtype: DType
    function: str = ""
    """Name of the function, if the file has no class Model and several functions."""
    operands: tuple[Declared, ...] = ()
    axes: tuple[DeclaredAxis, ...] = ()
    ranges: tuple[DeclaredRange, ...] = ()
    further: tuple[Shape, ...] = ()
    """Further shapes of the task, besides the file's own sizes."""
    slug: str = ""
    """Name of the operation. Empty: the function's, or the file's for a class Model."""


def describe(
    question: SubmittedReference, *, seed: int, policy: Policy, isolation: Isolation, threads: int
) -> Description:
    """Run the file once in a sandbox; raise ReferenceRefused with the matching reason, or EnvironmentUnfit."""
    files, rare = {"reference.py": question.source}, ("torch.fx.experimental.symbolic_shapes",)  # for the meta device
    stage = Stage(Program(language=LANGUAGES["torch"], files=files, warm=True, rare_modules=rare), isolation)
    body = {
        "path": f"{stage.candidate_directory}/reference.py",
        "function": question.function,
        "operands": [
            {"name": one.name, "dtype": one.dtype, "sizes": list(one.sizes), "low": one.low, "high": one.high}
            for one in question.operands
        ],
        "dtype": TORCH_NAMES[question.dtype],
        "seed": seed,
        "limit_bytes": most_set_bytes(policy),
    }
    try:
        handed_over = run_one_shot(
            stage,
            DESCRIBE,
            body,
            what="a run of it",
            most_bytes=DESCRIPTION_LIMIT_BYTES,
            limits=_limits(policy),
            threads=threads,
        )
    except ValueError as error:
        raise refusal(question.name, f"its guest's reply can't be read: {error}") from error
    finally:
        stage.remove()
    if isinstance(handed_over, Refused):
        require_verdict(handed_over)
        raise refusal(question.name, _ending_text(handed_over))
    return parse_description(question, handed_over, policy)


def _limits(policy: Policy) -> Limits:
    return Limits(
        wall_s=WALL_PER_CPU_S * LIMIT_S,
        cpu_s=int(LIMIT_S * 16),
        thread_cpu_s=LIMIT_S,
        still_s=STILL_S,
        memory_bytes=policy.memory_limit_bytes,
    )


def parse_description(question: SubmittedReference, untrusted: bytes, policy: Policy) -> Description:
    """Read a guest's answer; raise ReferenceRefused for a problem, and for anything that no honest guest says."""
    try:
        document = orjson.loads(untrusted)
        if isinstance(document, dict) and "problem" in document:
            raise refusal(question.name, _problem_text(Problem.model_validate(document["problem"]), policy))
        description = Description.model_validate(document)
        _require_complete(question, description)
    except (ValidationError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        wrong = error.errors()[0] if isinstance(error, ValidationError) else None
        first = f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}" if wrong else str(error)
        raise refusal(question.name, f"what it is can't be written down: {first[:200]}") from error
    if not any(one.literal is None for one in description.arguments):
        raise refusal(question.name, "it takes no tensor: expected at least one among its arguments")
    if not description.results:
        raise refusal(question.name, "it returns no tensor: expected at least one")
    if len(description.results) > 4:
        raise refusal(question.name, f"it returns {len(description.results)} tensors: expected at most 4")
    return description


def _require_complete(question: SubmittedReference, description: Description) -> None:
    """Raise ValueError or TypeError if the fields don't belong together."""
    tensors = [one for one in description.arguments if one.literal is None]
    if any(one.dtype is None or one.sizes is None for one in tensors):
        raise ValueError("an argument is neither a tensor nor a value")
    if question.operands and len(tensors) != len(question.operands) and not description.generator:
        raise ValueError(f"it takes {len(tensors)} tensors: expected the {len(question.operands)} that are declared")
    if not question.operands and not description.generator:
        raise ValueError("it has no get_inputs(), and no operands were declared")
    by_place, by_name = map(parse_literal, (description.init, description.init_named or "{}"))
    if not (isinstance(by_place, ast.List) and isinstance(by_name, ast.Dict)):
        raise TypeError("what get_init_inputs() gives is neither a list nor a dictionary")
    require_form(description.returned, len(description.results))
    require_places([(one.name, one.within, one.literal) for one in description.arguments])


def _problem_text(problem: Problem, policy: Policy) -> str:
    """Return the reason, in Forge's own words as far as possible."""
    text = harmless(problem.text[:TEXT_LIMIT].encode())
    match problem.code:
        case "room":
            needed = text if text.isdecimal() else "more"
            return f"it needs {needed} bytes of operands and weights: {expected_room(policy)}"
        case "memory":
            return text
        case "file":
            return f"{text}: a reference reads no files, all it needs stands in it"
        case "network":
            return f"{text}: a reference needs no network, and its sandbox has none"
        case "process":
            return f"{text}: a reference starts no programs"
        case "device":
            return f"{text}: a reference runs on the processor, and asks for no other device"
        case "large":
            return "what it is takes too many words"
        case _:
            return text or "it doesn't run"


def _ending_text(refused: Refused) -> str:
    match refused.reason.code:
        case "OUT_OF_MEMORY":
            return "it needs more memory than a guest may have"
        case "TIMEOUT":
            return f"one run of it takes longer than {LIMIT_S:g} s on this machine"
        case "SANDBOX_VIOLATION":
            return "it makes a system call that its sandbox doesn't allow"
        case "TAMPERING":
            return f"it meddles with its guest: {refused.reason.message}"
        case _:
            return f"it ended its process: {refused.reason.message}"


def refusal(name: str, why: str) -> ReferenceRefused:
    """Return the error that says why no task can be judged against a reference file."""
    return ReferenceRefused(f"the reference {name!r} is refused: {why}", hint="forge explain REFERENCE_REFUSED")
