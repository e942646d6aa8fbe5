"""How people speak of speed: what is looked for, in order; what an earlier pattern took isn't looked at again."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from forge.claims import figure
from forge.claims.figure import Figure
from forge.claims.number import NUMBER, WORD

BASELINE_OR_LIBRARY = (
    r"(?:pytorch|torch|eager|compile\b|the compiler|the vendor|vendor|cublas\w*|cudnn|cutlass|tensorrt[\w-]*"
    r"|flash[- ]?attention\S*|flashinfer|vllm|sglang|inductor|triton|onednn|mkl|liger|apex|xformers|cuda"
    r"|baselines?\b)"
)
SPEED = re.compile(
    r"\b(?:fast(?:er|est)?|slow(?:er|est)?|quick(?:er|est|ly)?|speed\w*|sped|latenc\w+|throughput|perf|performan\w+"
    r"|outperform\w*|run[- ]?times?|wall[- ]clock|accelerat\w+|snappier"
    r"|(?:execution|compute|kernel|step|response|wall|gpu|device) times?)\b"
    r"|\b(?:over|than|vs\.?|versus|against|compared (?:to|with)|of) (?:plain |the )?" + BASELINE_OR_LIBRARY,
    re.IGNORECASE,
)
"""What makes a number one about speed."""
RATIO_COLUMN = re.compile(r"speed-?up|\bratio\b|\bfaster\b|\bas fast\b", re.IGNORECASE)
FLOOR_COLUMN = re.compile(r"\bfloor\b", re.IGNORECASE)
RATE_COLUMN = re.compile(
    r"(?:\b|(?<=\d))(?P<prefix>[kmgtp])?(?:i?b/s|flops?/s|(?<=[kmgtp])flops)\b|\b[a-z]+/s\b", re.IGNORECASE
)
INTERVAL_COLUMN = re.compile(r"interval|\bci\b|95\s?%", re.IGNORECASE)

_PLAIN = NUMBER.removeprefix(r"(?<![\w.,])")
_SEP = r"(?:to|-|and|\.\.+)"
_SPAN = rf"(?P<low>{_PLAIN})\s?x?\s*(?:,|{_SEP})\s*(?P<high>{_PLAIN})"
NAMED_INTERVAL = re.compile(rf"95\s?%\s*(?:confidence\s*)?(?:intervals?|ci)?[^\d|]{{0,24}}{_SPAN}(?:\s?x\b)?", re.I)
_BETWEEN = r"[^\d()\[\]|;]{0,60}[\[(]\s*"
BRACKETED_INTERVALS = (
    re.compile(rf"{_BETWEEN}(?P<low>{_PLAIN})\s?x?\s*{_SEP}\s*(?P<high>{_PLAIN})\s?x?\s*[\])]", re.IGNORECASE),
    re.compile(rf"{_BETWEEN}(?P<low>\d+\.\d+)x?\s*,\s*(?P<high>\d+\.\d+)x?\s*[\])]", re.IGNORECASE),
)
"""Behind a ratio, with at most the baseline's name in between; apart by a comma they have to be no sizes."""
CELL_INTERVAL = re.compile(rf"\s*[\[(]?\s*{_SPAN}\s?x?\s*[\])]?\s*", re.IGNORECASE)
MOST = re.compile(
    r"\b(?:up to|as (?:much|high|fast) as|at best|peak(?:s|ing)? (?:at|of)|max(?:imum)?(?: of)?|best case)[\s:]*$",
    re.I,
)
WITHIN_MOST = re.compile(r"\b(?:up to|as much as|at best)\b", re.IGNORECASE)
LEAST = re.compile(r"(?:\b(?:at least|more than|no less than)|>=?|≥)\s*$", re.IGNORECASE)

_N = rf"(?P<n>{NUMBER})"
_NW = rf"(?:(?P<n>{NUMBER})|\b(?P<w>{WORD}))"
_NEAR = r"[^.;!?|]{0,40}?"
_PERCENT = r"\s?(?:%|percent\b|per cent\b|pct\b)(?!\s*(?:confidence|intervals?|ci)\b)"
_UNIT = r"(?:ns|us|ms|s)"
_WORDS = r"(?:\s+[\w-]+){0,2}?\s+"
_TIMES = r"(?:latenc\w+|(?:\w+[- ])?times?|runtimes?|durations?)"
_RATES = r"(?:throughput|speed|performance|rate)"
_GPU_COUNT = r"(?!\s*(?:NVIDIA|AMD|RTX|MI\d|[HABL]\d{2,3}|GPUs?\b|cards?\b))"
_OTHER_QUANTITY = r"(?!\s*(?:more|fewer|as many|as much|larger|smaller|bigger|longer|the|what)\b)"

_ANY_NUMBER = (
    rf"(?P<n>(?<![\w.,/]){_PLAIN}(?:/\d+)?(?!\s?%\s*(?:confidence|interval))"
    rf"|\b(?!one\b)(?:{WORD}|twice|thrice|double|triple|quadruple|half|a third|a quarter)\b)"
)
_BESIDE = r"[^\d.,;:!?|()]{0,25}?"
_COMPARED_WORD = r"(?:(?<!no )longer|shorter|faster|slower|quicker|speed-?ups?)"
_AS_MUCH = r"(?:\s?(?:x|times|fold|%|percent))?\s+as\s+(?:long|short|fast|slow|quick\w*)\b"
_COMPARISON = rf"\b(?:{_COMPARED_WORD}|of (?:the|its|their|that) (?:\w+ )?time|(?:per|each) second|(?<=s )a second)\b"
_FACTOR = r"(?:twice|thrice|double|triple|quadruple|half|a (?:third|quarter|fifth|tenth))"
_WITH_A_BASELINE = r"(?:plain |the )?(?:pytorch|torch|eager|compile\b|inductor|compiler|vendor|cublas|cudnn)"


@dataclass(frozen=True)
class Pattern:
    """A way of saying it, and what it means."""

    expression: re.Pattern[str]
    read: Callable[[re.Match[str]], Figure]
    needs_speed: bool
    """Whether it speaks of speed only beside a word that does."""


def _pattern(expression: str, read: Callable[[re.Match[str]], Figure], *, needs_speed: bool) -> Pattern:
    return Pattern(re.compile(expression, re.IGNORECASE), read, needs_speed)


PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        rf"\bfrom\s+(?P<before>{NUMBER})\s?(?P<before_unit>{_UNIT})\b{_NEAR}\bto\s+(?P<after>{NUMBER})\s?"
        rf"(?P<after_unit>{_UNIT})\b",
        figure.fell,
        needs_speed=False,
    ),
    _pattern(
        rf"(?P<after>{NUMBER})\s?(?P<after_unit>{_UNIT})\b{_NEAR}\b(?:instead of|rather than|versus|vs\.?|against"
        rf"|compared (?:to|with)|down from){_NEAR}(?P<before>{NUMBER})\s?(?P<before_unit>{_UNIT})\b",
        figure.fell,
        needs_speed=False,
    ),
    _pattern(
        rf"{NUMBER}\s?x?\s*{_SEP}\s*(?P<n>{_PLAIN})\s?x(?!\w)(?!\s*\d){_OTHER_QUANTITY}",
        figure.ratio,
        needs_speed=False,
    ),
    _pattern(
        rf"{NUMBER}\s*{_SEP}\s*(?P<n>{_PLAIN})(?:\s|-)?(?:times|fold)\b",
        figure.ratio,
        needs_speed=True,
    ),
    _pattern(rf"{_N}x(?!\w)(?!\s*\d){_GPU_COUNT}{_OTHER_QUANTITY}", figure.ratio, needs_speed=False),
    _pattern(rf"{_N}x(?!\w)(?!\s*\d){_GPU_COUNT}", figure.ratio, needs_speed=True),
    _pattern(rf"{_N} x(?!\w)(?!\s*[\d.]){_GPU_COUNT}", figure.ratio, needs_speed=True),
    _pattern(
        rf"{_NW}[\s-]?(?:fold\b|times\s+(?:\w+ly\s+)?(?:faster|quicker|slower|as|the|its|more|higher|less|lower|better"
        r"|over|than|speed|what|that|improve|perf|throughput))",
        figure.ratio,
        needs_speed=True,
    ),
    _pattern(rf"\bby\s+{_NW}\s+times\b", figure.ratio, needs_speed=True),
    _pattern(
        rf"\b(?:speed-?ups?|faster|factor)\s*(?:of|is|was|by|:|=)\s*(?:a\s+factor\s+of\s+)?(?:about\s+)?{_NW}"
        r"(?!\d|[.,]\d|\s?(?:%|percent))",
        figure.ratio,
        needs_speed=True,
    ),
    _pattern(rf"{_N}(?=\s*[\[(]\s*{_PLAIN}\s?x?\s*(?:to|-)\s*{_PLAIN}\s?x?\s*[\])])", figure.ratio, needs_speed=True),
    _pattern(
        rf"{_N}{_PERCENT}\s+of\s+(?:the|its|their|that|what)\b{_NEAR}\bfloor\b",
        figure.floor_share,
        needs_speed=False,
    ),
    _pattern(
        rf"{_N}{_PERCENT}\s+of\s+(?:the\s+|its\s+)?{_NEAR}\b(?:peak|roofline|speed of light|bandwidth|ceiling)\b",
        figure.absolute,
        needs_speed=False,
    ),
    _pattern(
        rf"{_N}\s?(?P<prefix>[kmgtp])?(?:i?B/s(?:ec)?|flops?/s|(?<=[kmgtp])flops?|ops/s)(?!\w)",
        figure.rate,
        needs_speed=False,
    ),
    _pattern(rf"{_NW}\s?[a-z]+(?:/s(?:ec(?:ond)?)?|\s+(?:per|a|each)\s+second)\b", figure.rate, needs_speed=False),
    _pattern(
        r"\b(?:zero|no|near-zero|negligible|without(?:\s+any)?)[\s-]+(?:\w+\s+){0,2}?overhead\b|\boverhead-free\b"
        r"|\bzero-cost\b",
        figure.absolute,
        needs_speed=False,
    ),
    _pattern(
        r"\bfastest\s+(?:[\w-]+\s+){0,3}?(?:kernels?|implementations?|librar(?:y|ies)|engines?|on the market"
        r"|in the world|available|ever)\b|\bstate[- ]of[- ]the[- ]art\s+(?:performance|speed|throughput|latency)\b"
        r"|\bfastest\b[^.;!?|]{0,60}\b(?:published|known|ever|anyone|anywhere|exists?|to date|so far)\b"
        r"|\b(?:unmatched|unbeaten|unrivall?ed|unparallel\w+)\s+(?:performance|speed|throughput)\b"
        r"|\b(?:blazing(?:ly)?|lightning|blistering(?:ly)?|insanely)[- ]fast\b",
        figure.absolute,
        needs_speed=False,
    ),
    _pattern(
        r"\b(?:much|far|significantly|considerably|dramatically|substantially|vastly|way|several|many|multiple)"
        r"\s+(?:times\s+)?(?:faster|quicker)\b"
        rf"|\b(?:faster|quicker|slower)\s+than\s+(?:[\w'-]+\s+){{0,2}}?{BASELINE_OR_LIBRARY}"
        rf"|\b(?:outperform|outpac|outrun|surpass|beat)(?:s|es|ed|ing)?\s+(?:[\w'-]+\s+){{0,2}}?{BASELINE_OR_LIBRARY}"
        rf"|\b(?:as\s+fast\s+as|on\s+(?:a\s+)?par\s+with|at\s+parity\s+with)\s+(?:[\w'-]+\s+){{0,2}}?"
        rf"{BASELINE_OR_LIBRARY}",
        figure.compared,
        needs_speed=False,
    ),
    _pattern(rf"{_ANY_NUMBER}(?:{_AS_MUCH}|{_BESIDE}{_COMPARISON})", figure.unreadable, needs_speed=False),
    _pattern(rf"{_NW}{_PERCENT}", figure.unreadable, needs_speed=True),
    _pattern(
        rf"\b{_FACTOR}\s+(?:of\s+)?(?:as\s+(?:fast|quick)|(?:the|its|their)\s+(?:\w+\s+)?(?:{_TIMES}|{_RATES})\b)"
        rf"|\b(?:doubl|tripl|quadrupl|halv)(?:es?|ed|ing)\b{_NEAR}\b(?:{_TIMES}|{_RATES})\b"
        rf"|\bcut(?:s|ting)?\b{_NEAR}\bin\s+half\b",
        figure.unreadable,
        needs_speed=False,
    ),
    _pattern(rf"\b(?:an?|by|{WORD})\s+orders?[- ]of[- ]magnitude\b", figure.unreadable, needs_speed=False),
    _pattern(rf"\b{_COMPARED_WORD}{_BESIDE}{_ANY_NUMBER}", figure.unreadable, needs_speed=False),
    _pattern(
        rf"{NUMBER}\s?{_UNIT}\b{_NEAR}\b(?:with|by|for|in|using|under|from)\s+{_WITH_A_BASELINE}.*?{NUMBER}\s?{_UNIT}\b",
        figure.unreadable,
        needs_speed=False,
    ),
)
"""The last four read nothing: a number beside a word of time or speed that none before them took is flagged."""
TIME = Pattern(re.compile(rf"{_N}\s?(?P<unit>{_UNIT})\b"), figure.time, False)
"""Looked for only where a kernel or an event is cited: most times aren't about kernels."""
