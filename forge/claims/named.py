"""What a passage names beside its figures: evidence, baselines, processors, shapes, types, operations, the level."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from forge.claims.number import WORD, value_of
from forge.domain.contender_name import PREFIX, is_contender
from forge.domain.policy import BaselineKind
from forge.domain.shape_slug import AXIS_ABBREVIATIONS, shape_slug
from forge.operations import OPERATIONS
from forge.platforms import PROCESSORS

KERNEL_ID = re.compile(r"\b(?:cpp|cuda|triton|torch|hip|metal)_[a-z0-9]+(?:_[a-z0-9]+)*_v[1-9]\d*\b")
"""Pattern of a kernel's id in text."""
EVENT = re.compile(
    r"\bevents?\s+(?:no\.?\s*|number\s+|#\s*)?(\d{1,12}(?:(?:\s*,\s*|\s+and\s+)\d{1,12})*)\b",
    re.I,
)
"""Pattern of the numbers of cited events, as in `events 12 and 15`."""
BEYOND_OPERATION = re.compile(
    r"\bend[- ]to[- ]end\b|\be2e\b|\bmodels?\b|\binference\b|\bserving\b|\bservers?\b|\brequests?\b|\bendpoints?\b"
    r"|\bapplications?\b|\btraining\b|\btokens?\s*(?:/|per\b)|\bllama|\bqwen|\bmistral|\bmixtral|\bdeepseek|\bgemma"
    r"|\bgpt\b|\bllms?\b|\bvllm\b|\bsglang\b|\bttft\b|\btpot\b|\btime[- ]to[- ]first\b|\bsteps?\s+times?\b"
    r"|\blayers?\b"
    r"|\bnetworks?\b|\bchatbots?\b|\busers\b|\bproduction\b|\btransformers?\b|\bdeployments?\b|\buser[- ]visible\b",
    re.I,
)
"""Words for what is larger than one call of one operation."""
_ANY_SHAPE = re.compile(
    r"\b(?:all|any|every|most|many|various|typical|common|realistic)\s+(?:\w+\s+)?(?:shapes?|sizes?)\b"
    r"|\bacross\s+(?:the\s+)?(?:\w+\s+)?(?:shapes|sizes)\b|\bregardless of (?:shape|size)\b"
    r"|\b(?:all|any|every)\s+(?:batch(?:es)?|inputs?|rows?|widths?|lengths?)\b",
    re.I,
)
ANY_PROCESSOR = re.compile(
    r"\b(?:all|any|every|most|many|other|modern|recent|data-?\s?cent(?:er|re)|consumer|hopper|ampere|ada|blackwell"
    r"|nvidia|amd|apple)(?:'s)?\s+(?:of\s+)?(?:[\w']+\s+)?(?:gpus?|cards?|processors?|accelerators?|hardware"
    r"|machines?)\b|\b(?:on|for|across|with)\s+(?:gpus|cards|accelerators|tpus?"
    r"|(?:the\s+)?(?:hopper|ampere|ada|blackwell|turing|volta))\b",
    re.I,
)
_OTHER_PROCESSOR = re.compile(
    r"\b(?:(?:RTX|GTX|Quadro|Tesla|Radeon|Arc|TITAN)\s?[A-Z]{0,3}\s?\d{1,4}\w{0,3}|GH\d{3}|GB\d{3}|[ABHV]\d{2,3}[A-Z]?|MI\d{2,3}\w?"
    r"|TPU\s?v\d\w?|Gaudi\s?\d|T4G?|(?:Apple's\s)M\d)\b"
)
_HOST = re.compile(r"\b(?:CPUs?|EPYC|Xeon|Ryzen|Graviton|Threadripper)\b", re.I)
"""Pattern of words for a host's processor."""
_OTHER_DTYPE_NAMES = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "half precision": "fp16",
    "single precision": "fp32",
    "float64": "fp64",
    "nvfp4": "fp4",
    "float8": "fp8",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "mxfp4": "fp4",
}
_DTYPE = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(_OTHER_DTYPE_NAMES)}|fp(?:4|8|16|32|64)|[bt]f(?:16|32)|int[48])(?![^\W_])", re.I
)
"""Pattern of the name of an element type."""
ANY_DTYPE = re.compile(
    r"\b(?:all|any|every|each|most|other|lower|higher)\s+(?:element\s+|data\s*)?"
    r"(?:precisions?|dtypes?|types?|formats?)\b",
    re.I,
)
"""Pattern of words for several element types."""
DATA_SHEET = re.compile(r"\bdata[- ]?sheets?\b", re.I)
"""Pattern of words for a vendor's data sheet, whose numbers are no measurements here."""
_BASELINES: tuple[tuple[str, str], ...] = (
    ("contender", rf"\b{PREFIX}[a-z0-9_]+\.[a-z0-9_]+@[0-9a-z][0-9a-z.+!_-]*[0-9a-z]\b"),
    ("eager", r"\b(?:(?:py)?torch(?:'s)?\s+)?eager\b"),
    ("compile", r"\btorch\.compile\b|\btorch compile\b|\bcompile\b|\binductor\b|\bthe compiler\b"),
    ("library", r"\b(?:cublas\w*|cudnn|cutlass|tensorrt[\w-]*|flash[- ]?attention(?:[- ]?\d)?|flashinfer|xformers"
                r"|onednn|mkl|apex|liger|rocblas|miopen|vllm|sglang)\b"),
    ("vendor", r"\bvendor(?:'s)?\b"),
    ("promoted", r"\b(?:kernel|version)\s+(?:that\s+(?:is|was)\s+)?promoted\s+(?:before|earlier|now)\b"
                 r"|\bprevious(?:ly promoted)?\s+(?:version|kernel)\b"),
    ("pytorch", r"\b(?:py)?torch\b"),
)  # fmt: skip
_BASELINE = re.compile("|".join(f"(?P<{kind}>{expression})" for kind, expression in _BASELINES), re.I)
"""Pattern of words for a baseline; the group that matches is its kind."""
_SIZES = re.compile(
    r"(?<![\w.])\d{1,10}(?:\s?(?:x|\bby\b)\s?\d{1,10}){1,15}(?!\w|\.\d)|[(\[]\s*\d{1,10}(?:\s*,\s*\d{1,10})+\s*[)\]]"
)
"""Pattern of sizes as text writes them: `4096 x 4096` or `(4096, 4096)`."""


@dataclass(frozen=True)
class Cited:
    """The evidence that a text names."""

    kernels: tuple[str, ...]
    events: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.kernels or self.events)


@dataclass(frozen=True)
class BaselineNamed:
    """A baseline, or something that isn't one, where it is named."""

    kind: str
    """A `BaselineKind`, which may be a contender's name, or `library` or `pytorch`."""
    start: int
    said: str


@lru_cache
def cited(text: str) -> Cited:
    """Return the kernels by their ids and the events by their numbers."""
    kernels = dict.fromkeys(KERNEL_ID.findall(text))
    events = dict.fromkeys(int(number) for found in EVENT.findall(text) for number in re.findall(r"\d+", found))
    return Cited(tuple(kernels), tuple(events))


@lru_cache
def first(pattern: re.Pattern[str], text: str) -> str | None:
    """Return the first words in a text that a pattern matches."""
    match = pattern.search(text)
    return match[0] if match else None


def _without_ids(text: str) -> str:
    """Return the text with spaces in place of kernel ids, which hold names of everything."""
    return KERNEL_ID.sub(lambda match: " " * len(match[0]), text)


@lru_cache
def baselines(text: str) -> tuple[BaselineNamed, ...]:
    """Return the baselines that a text names, in order."""
    found = _BASELINE.finditer(_without_ids(text))
    return tuple(
        BaselineNamed(match[0] if is_contender(match[0]) else match.lastgroup or "", match.start(), match[0])
        for match in found
    )


def baseline_name(kind: BaselineKind) -> str:
    """Return a baseline as a sentence names it; a contender has its own name."""
    names: dict[BaselineKind, str] = {
        "eager": "PyTorch eager",
        "compile": "`torch.compile`",
        "vendor": "the vendor's operator",
        "promoted": "the kernel promoted before",
    }
    return names.get(kind, f"`{kind}`")


@lru_cache
def processors(text: str) -> Mapping[str, str | None]:
    """Return the slug of each processor by its name in the text; None for one that isn't in the table."""
    text = _without_ids(text)
    found: dict[str, str | None] = {match: _SLUGS[_squeezed(match)] for match in _PROCESSOR.findall(text)}
    left = _PROCESSOR.sub(" ", text)
    return found | dict.fromkeys(_OTHER_PROCESSOR.findall(left)) | dict.fromkeys(_HOST.findall(left), "cpu")


@lru_cache
def dtypes(text: str) -> frozenset[str]:
    """Return the element types, by the project's names for them."""
    found = (name.lower() for name in _DTYPE.findall(_without_ids(text)))
    return frozenset(_OTHER_DTYPE_NAMES.get(name, name) for name in found)


@lru_cache
def operations(text: str) -> frozenset[str]:
    """Return the operations of the catalogue, however their words are joined."""
    return frozenset(_OPERATIONS[_squeezed(found)] for found in _OPERATION.findall(_without_ids(text)))


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _spaced(name: str) -> str:
    """Return a pattern of a name, whose pieces may be apart; a name of two signs counts in capitals only."""
    pieces = re.findall(r"[a-z]+|\d+", name)
    return r"[\s-]?".join(rf"(?i:{piece})" if len(name) > len("t4") else piece.upper() for piece in pieces)


def several(text: str) -> str | None:
    """Return the first words for a number of processors, such as `8x H200` or `eight H200s`; None without them."""
    return first(_SEVERAL, _without_ids(text))


_SLUGS = {
    _squeezed(name): one.slug
    for one in PROCESSORS.values()
    for name in (one.name, one.slug, *one.aliases)
    if one.slug != "cpu"
}
_NAMES = "|".join(map(_spaced, sorted(_SLUGS, key=len, reverse=True)))
_PROCESSOR = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?!\w)")
"""Pattern of the name of a processor that Forge knows."""
_SEVERAL = re.compile(
    rf"(?<![\w.,])(?:(?:[2-9]|\d\d+)\s?x\s+(?:NVIDIA\s+)?(?:{_NAMES})s?"
    rf"|(?:[2-9]|\d\d+|(?!one\b){WORD})\s+(?:NVIDIA\s+)?(?:{_NAMES})s)(?!\w)"
)
"""Pattern of a number of such processors."""
_OPERATIONS = {_squeezed(name): name for name in OPERATIONS}
_OPERATION = re.compile(
    rf"(?<!\w)(?:{'|'.join(sorted(OPERATIONS, key=len, reverse=True))})(?!\w)".replace("_", r"[\s_-]?").replace(
        "topk", r"top[\s-]?k"
    ),
    re.I,
)


_SIZE = r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,12})"
_COUNTED = re.compile(rf"(?<![\w.,]){_SIZE}[\s-](rows?|columns?|tokens?|elements|sequences?|heads)\b", re.I)
"""Pattern of a number of things that an axis may count by another name."""
_RANGE = (
    r"(?:\s*(?:to|-|\.\.+|through|and up to)\s*(\d{1,12})(?![\w%]|\.\d)"
    r"|\s*(\+|(?:and|or) (?:up|more|above|beyond|larger)))?"
)
"""Pattern of what makes a range of the size before it: another size, or no end."""


@dataclass(frozen=True)
class ShapeNamed:
    """How much of one shape a text names."""

    missing: tuple[str, ...]
    """Axes that it gives no size."""
    other: str | None
    """Text that names another shape instead; None if there is none."""


@lru_cache
def shape(text: str, axes: tuple[tuple[str, int], ...], op: str) -> ShapeNamed:
    """Return whether the text names a shape: axis by axis, or by sizes in the operation's order."""
    wanted = dict(axes)
    text = _without_ids(text)
    if any_shape := first(_ANY_SHAPE, text):
        return ShapeNamed((), any_shape)
    if re.search(rf"\b{re.escape(shape_slug(wanted))}\b", text):
        return ShapeNamed((), None)
    given = {axis: _sizes_of(axis, text) for axis in wanted}
    wrong = next((f"{axis} {size}" for axis, found in given.items() for size in found if size != wanted[axis]), None)
    if any(given.values()):
        return ShapeNamed(tuple(axis for axis, found in given.items() if not found), wrong)
    counted = [(found, int(value_of(found[0]))) for found in _COUNTED.findall(text)]
    if other := next((" ".join(found) for found, size in counted if size not in wanted.values()), None):
        return ShapeNamed((), other)
    order = OPERATIONS[op].axes if op in OPERATIONS else tuple(wanted)
    sizes = tuple(wanted[axis] for axis in order if axis in wanted)
    listed = {found: tuple(map(int, re.findall(r"\d+", found))) for found in _SIZES.findall(text)}
    if sizes in listed.values():
        return ShapeNamed((), None)
    return ShapeNamed(tuple(wanted), next(iter(listed), None))


def _sizes_of(axis: str, text: str) -> list[int]:
    """Return the sizes that a text gives an axis, as in `hidden size 4096`, `hidden_size=4096` or `16 heads`."""
    stem = axis.removesuffix("_size")
    words = stem.replace("_", r"[\s_-]?")
    words += r"(?:[\s_-]?sizes?)?" if stem != axis else "" if axis.endswith("s") else "s?"
    words = f"(?:{words}|{AXIS_ABBREVIATIONS[axis]}(?==))" if axis in AXIS_ABBREVIATIONS else words
    between = r"(?:\s+(?:sizes?|of|is|was|up to|from|between|above|over|below|beyond))*\s*+(?:[=:]\s*+)?"
    found = re.findall(rf"\b{words}{between}{_SIZE}(?![\w%]|\.\d){_RANGE}", text, re.I)
    found = found or re.findall(rf"(?<![\w.,]){_SIZE}[\s-]{words}\b()()", text, re.I)
    # the end of a range is another size; one without an end names none that could be measured
    return [int(value_of(one)) if one[0].isdigit() else -1 for group in found for one in group if one]
