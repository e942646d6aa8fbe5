"""The forms in which speed is spoken of: the few that are read, and those that are only recognised and flagged."""

import re
from typing import Literal

from forge.claims.number import NUMBER, PLAIN_NUMBER, WORD

Kind = Literal["ratio", "floor_share", "time", "rate", "boast", "unreadable"]
"""Kinds of figures. A boast gives no measure; `unreadable` has a number in a form that isn't read."""
_LIBRARY = (
    r"(?:pytorch|torch|eager|compile\b|the compiler|the vendor|vendor|cublas\w*|cudnn|cutlass|tensorrt[\w-]*"
    r"|flash[- ]?attention\S*|flashinfer|vllm|sglang|inductor|triton|onednn|mkl|liger|apex|xformers|cuda)"
)
SPEED = re.compile(
    r"\b(?:fast(?:er|est)?|slow(?:er|est)?|quick(?:er|est|ly)?|speed\w*|sped|latenc\w+|throughput|perf|performan\w+"
    r"|outperform\w*|run[- ]?times?|wall[- ]clock|accelerat\w+|snappier"
    r"|(?:execution|compute|kernel|step|response|wall|gpu|device) times?)\b"
    rf"|\b(?:over|than|vs\.?|versus|against|compared (?:to|with)|of) (?:plain |the )?(?:{_LIBRARY}|baselines?\b)",
    re.I,
)
"""Words that make a number in their sentence one about speed."""
_N = rf"(?P<n>{NUMBER})"
"""Pattern of a number, as the group `n`."""
_NW = rf"(?:{_N}|\b{WORD})"
"""Pattern of a number, in digits or in words."""
_NEAR = r"[^.;!?|]{0,40}?"
"""Pattern of up to 40 characters within one sentence."""
_BESIDE = r"[^\d.,;:!?|()]{0,25}?"
"""Pattern of up to 25 characters without digits or punctuation."""
_SEP = r"(?:to|-|and|\.\.+)"
"""Pattern of what stands between the two ends of a range."""
_UNIT = r"(?:ns|us|ms|s)"
"""Pattern of a unit of time."""
_PERCENT = r"\s?(?:%|percent\b|per cent\b|pct\b)(?!\s*(?:confidence|intervals?|ci)\b)"
"""Pattern of a per cent sign or word that doesn't speak of an interval's confidence."""
_NO_GPU = r"(?!\s*(?:NVIDIA|AMD|RTX|MI\d|[HABL]\d{2,3}|GPUs?\b|cards?\b))"
"""Pattern that fails before the name of a GPU, whose number is no claim."""
_NO_QUANTITY = r"(?!\s*(?:more|fewer|as many|as much|larger|smaller|bigger|longer|the|what)\b)"
"""Pattern that fails before words of quantity, as in `twice as many`."""
_OF_ELSE = (
    r"(?!\s+(?:of\s+(?:its|the|all)\s+|less\s+|more\s+|fewer\s+)(?:\w+\s+)?"
    r"(?:memory|bytes|registers|lines|code|rows|columns|values|elements|inputs|weights|draws|bounds?|errors?)\b)"
)
"""Pattern that fails before words of something else than speed, as in `30 % less memory`."""
_SLOWER = r"(?!\s*(?:slower|as\s+slow)\b)"
"""Pattern that fails before a word that says slower."""
_FACTOR = (
    r"(?:twice|thrice|double|triple|quadruple|half|(?:an?|one|two)[ -](?:third|quarter|fifth|sixth|seventh|eighth"
    r"|ninth|tenth|hundredth)s?)"
)
_AMOUNT = r"(?:\w+[- ])?(?:latenc\w+|times?|runtimes?|durations?|throughput|speed|performance|rate)\b"
"""Pattern of the quantity that a claim is about."""
_ANY_NUMBER = (
    rf"(?:(?P<n>(?<![\w.,/])(?<!\d'){PLAIN_NUMBER}(?:/\d+)?(?!\s?%\s*(?:confidence|interval)))"
    rf"|\b(?!one\b)(?:{WORD}|{_FACTOR})\b)"
)
_COMPARED = r"(?:(?<!no )longer|shorter|faster|slower|quicker|speed-?ups?)"
"""Pattern of a word that compares two times or speeds."""
_OF_TIME = (
    rf"(?:of (?:the|its|their|that|{_LIBRARY}'s) (?:\w+ )?(?:run)?time|(?:per|each) second|(?<=s )a second"
    r"|times in the time)"
)
_AS = r"(?:\s?(?:x|times|fold|%|percent))?\s+as\s+(?:long|short|fast|slow|quick\w*)\b"
"""Pattern of `times as fast` and words like it."""
_AGAINST = (
    r"(?:instead of|rather than|versus|vs|against|compared (?:to|with)|down from"
    r"|(?:with|by|for|in|using|under|from)\s+(?:plain |the )?(?:pytorch|torch|eager|compile|inductor"
    r"|compiler|vendor|cublas|cudnn))"
)
_THAN = r"\s+(?:[\w'-]+\s+){0,2}?"
"""Pattern of up to two words between a comparison and what follows."""
_SPAN = rf"(?P<low>{PLAIN_NUMBER})\s?x?\s*(?:,|{_SEP})\s*(?P<high>{PLAIN_NUMBER})"
"""Pattern of an interval's two ends, as the groups `low` and `high`."""
NAMED_INTERVAL = re.compile(rf"95\s?%\s*(?:confidence\s*)?(?:intervals?|ci)?[^\d|]{{0,24}}{_SPAN}(?:\s?x\b)?", re.I)
"""Pattern of an interval that the text calls a 95 % interval."""
INTERVAL_BEHIND = tuple(
    re.compile(
        rf"[^\d()\[\]|;]{{0,60}}[\[(]\s*(?P<low>{number})\s?x?\s*{gap}\s*(?P<high>{number})\s?x?\s*[\])]", re.I
    )
    for number, gap in ((PLAIN_NUMBER, _SEP), (r"\d+\.\d+", ","))
)
"""Interval in brackets behind a ratio. With a comma it needs decimals, since integers would be sizes."""
CELL_INTERVAL = re.compile(rf"\s*+[\[(]?\s*+{_SPAN}\s?x?\s*+[\])]?\s*+", re.I)
MOST = re.compile(
    r"\b(?:up to|as (?:much|high|fast) as|at best|peak(?:s|ing)? (?:at|of)|max(?:imum)?(?: of)?|best case)[\s:]*\d",
    re.I,
)
"""Pattern of words by which a number is said of the best of several."""


LEAST = re.compile(
    r"(?:\b(?:at least|(?:more|better|higher|faster) than|over|above|beyond|exceed(?:s|ed|ing)?|upwards of"
    r"|a minimum of|(?:no|not|never|nothing) (?:less|lower|worse|below)(?: than)?)|[>\u2265])[\s=]*$",
    re.I,
)
"""Pattern of words right before a number by which it is a lower bound."""
OPERATOR = re.compile(rf"\^$|(?:(?<![\w.])\d[\d.,]*|\b{WORD})\s*(?:[*^/+]|times)\s*$", re.I)
"""Pattern of a number and a sign right before a number: with it they are worth something else."""


def _form(kind: Kind, expression: str, *, beside_speed: bool = False) -> tuple[Kind, re.Pattern[str], bool]:
    """Return a form, and whether it counts only in a sentence with a word of speed."""
    return kind, re.compile(expression, re.I), beside_speed


FORMS = (
    _form("ratio", rf"{_N}x(?!\w)(?!\s*\d){_NO_GPU}{_NO_QUANTITY}{_SLOWER}"),
    _form("ratio", rf"{_N}(?:x(?!\w)(?!\s*\d)| x(?!\w)(?!\s*\d)(?!\.\d)){_NO_GPU}{_SLOWER}", beside_speed=True),
    _form(
        "ratio",
        rf"{_N}(?=\s*[\[(]\s*{PLAIN_NUMBER}\s?x?\s*(?:to|-)\s*{PLAIN_NUMBER}\s?x?\s*[\])])",
        beside_speed=True,
    ),
    _form("floor_share", rf"{_N}{_PERCENT}\s+of\s+(?:the|its|their|that|what)\b{_NEAR}\bfloor\b"),
    _form(
        "rate",
        rf"{_N}\s?(?P<prefix>[kmgtp])?(?:i?B(?:\s?/\s?s(?:ec)?|ps)|flops?\s?/\s?s|(?<=[kmgtp])flops?|ops/s)(?!\w)",
    ),
    _form(
        "rate",
        rf"{_N}\s?(?:[kmgtp]\s|(?:thousand|million|billion)\s)?[a-z]+(?:\s?/\s?s(?:ec(?:ond)?)?|\s+(?:per|a|each)\s+second)\b",
    ),
    _form("unreadable", rf"{_N}\s?(?:[kmgtp]i?B\s?\*?\s?s\s?\^?-1|(?:kilo|mega|giga|tera|peta)(?:flops?|bytes?)\b)"),
    _form(
        "boast",
        rf"{_N}{_PERCENT}\s+of\s+(?:the\s+|its\s+)?{_NEAR}\b(?:peak|roofline|speed of light|bandwidth|ceiling)\b"
        r"|\b(?:zero|no|near-zero|negligible|without(?:\s+any)?)[\s-]+(?:\w+\s+){0,2}?overhead\b|\boverhead-free\b"
        r"|\breach(?:es|ed)?\s+(?:its|the)\s+floor\b|\bat\s+(?:its|the)\s+(?:floor|roofline|speed\s+of\s+light)\b"
        r"|\bzero-cost\b|\bfastest\s+(?:[\w-]+\s+){0,3}?(?:kernels?|implementations?|librar(?:y|ies)|engines?"
        r"|on the market|in the world|available|ever)\b|\bstate[- ]of[- ]the[- ]art\s+(?:performance|speed|throughput"
        r"|latency)\b|\bfastest\b[^.;!?|]{0,60}\b(?:published|known|ever|anyone|anywhere|exists?|to date|so far)\b"
        rf"|\b(?:leav(?:es?|ing)|left)\s+(?:[\w'-]+\s+){{0,2}}?{_LIBRARY}[\w.]*{_NEAR}\bbehind\b"
        rf"|\b{_LIBRARY}[\w.]*\s+(?:loses?|lost|falls?|fell|lags?)\s+(?:to|behind)\b|\b(?:can't|cannot)\s+(?:keep\s+up|be\s+beaten)\b"
        rf"|\b(?:wins?|won)\s+(?:against|over)\s+{_LIBRARY}|\bnever\s+loses?\s+to\s+{_LIBRARY}|\b(?:needs?|takes?)\s+longer\s+than\s+(?:{_LIBRARY}|`?(?:cpp|cuda|triton|torch)_)"
        r"|\bbeats?\s+(?:every|all|any|them|the\s+rest)\b|\b(?:is|are)\s+the\s+(?:fastest|quickest)(?:[.!]|\s*$|\s+in\b)"
        r"|\bfaster\s+than\s+(?:everything|anything)\b|\b(?:unmatched|unbeaten|unrivall?ed|unparallel\w+)\s+(?:performance|speed|throughput)\b"
        r"|\b(?:blazing(?:ly)?|lightning|blistering(?:ly)?|insanely)[- ]fast\b|\b(?:much|far|significantly"
        r"|considerably|dramatically|substantially|vastly|way|several|many|multiple)\s+(?:times\s+)?(?:faster|quicker)\b",
    ),
    _form(
        "boast",
        rf"\b(?P<compared>(?:faster|quicker|slower)\s+than|(?:outperform|outpac|outrun|surpass|beat)(?:s|es|ed|ing)?"
        rf"|as\s+fast\s+as|on\s+(?:a\s+)?par\s+with|at\s+parity\s+with){_THAN}(?:{_LIBRARY}|(?P<denied>baselines?\b))",
    ),
    _form("unreadable", rf"{NUMBER}\s?x?\s*{_SEP}\s*(?P<n>{PLAIN_NUMBER})\s?x(?!\w)(?!\s*\d){_NO_QUANTITY}"),
    _form("unreadable", rf"\bfrom\s+{NUMBER}\s?{_UNIT}\b{_NEAR}\bto\s+{NUMBER}\s?{_UNIT}\b"),
    _form(
        "unreadable",
        rf"\bfrom\s+{NUMBER}{_NEAR}\bto\s+{NUMBER}\s?(?:{_UNIT}|(?:nano|micro|milli)?seconds?)\b"
        rf"|\bratio\b{_NEAR}{NUMBER}\s?(?::|to)\s?{NUMBER}",
        beside_speed=True,
    ),
    _form("unreadable", rf"{NUMBER}\s?{_UNIT}\b{_NEAR}\b{_AGAINST}\b.*?{NUMBER}\s?{_UNIT}\b"),
    _form(
        "unreadable",
        rf"(?:{_NW}[\s-]?fold|(?:tri|quadru|quintu|sextu)ple)\s+(?:gain|improvement|boost|win|lead|increase|advantage)s?\b",
    ),
    _form(
        "unreadable",
        rf"{_NW}(?:[\s-]?(?:fold|times)\b(?!\s+(?:have|has|are|is|were|was)\b)|{_PERCENT}{_OF_ELSE})",
        beside_speed=True,
    ),
    _form(
        "unreadable",
        rf"\b(?:{_COMPARED}|factor|boost|gain|improvement)\s*(?:of|is|was|by|:|=)\s*(?:about\s+|a\s+factor\s+of\s+){{0,2}}{_NW}",
        beside_speed=True,
    ),
    _form("unreadable", rf"\b{WORD}\s?[a-z]+(?:/s|\s+(?:per|a|each)\s+s)(?:ec(?:ond)?)?\b"),
    _form("unreadable", rf"{_ANY_NUMBER}(?:{_AS}|{_BESIDE}\b(?:{_COMPARED}|{_OF_TIME})\b)"),
    _form("unreadable", rf"\b{_COMPARED}{_BESIDE}{_ANY_NUMBER}"),
    _form(
        "unreadable",
        rf"\b{_FACTOR}\s+of\s+(?:what\s+)?{_LIBRARY}|\b{_FACTOR}\s+(?:of\s+)?(?:as\s+(?:fast|quick)|(?:the|its|their)\s+{_AMOUNT})"
        rf"|\b(?:doubl|tripl|quadrupl|quintupl|halv)(?:es?|ed|ing)\b{_NEAR}\b(?:{_AMOUNT}|(?:tokens|requests)\b)|\bcut(?:s|ting)?\b{_NEAR}\bin\s+half\b"
        rf"|\b(?:an?|by|{WORD})\s+orders?[- ]of[- ]magnitude\b",
    ),
)
"""Forms in order. Text that one form matched isn't matched by a later one."""
TIME = re.compile(rf"{_N}\s?-?(?P<unit>{_UNIT}|(?:[num]|nano|micro|milli)?sec(?:ond)?s?)\b")
"""Pattern of a number with a unit of time."""
OTHER_TIME = re.compile(
    rf"(?:{_N}|\b(?:{WORD}|half an?|a))\s?(?:clock\s+)?(?:cycles|ticks)\b"
    rf"|\b(?:{WORD}|half an?|an?)\s(?:nano|micro|milli)seconds?\b",
    re.I,
)
"""Pattern of a time in words, or in a unit that no event has."""
CARRIED = re.compile(
    r"\b(?:the same (?:holds|goes|is true|applies)|so (?:it is|is it|does it|do|are)|as (?:much|well)|likewise"
    r"|equally|carr(?:y|ies) over)\b",
    re.I,
)
"""Pattern of words that carry what was said over to something else."""
DENIAL = re.compile(r"(?:\b(?:cannot|never|not)|n't)\s+(?:be\s+)?$", re.I)
"""Pattern of a negation right before a claim, which then claims nothing."""
END = re.compile(r"(?<=[.!?;])[\"')\]*_]*\s+(?=[\"'(\[*_`~<>=-]*[A-Z0-9]|(?:cpp|cuda|triton|torch|hip|metal)_)")
"""End of a sentence. A kernel's id may begin the next one without a capital."""
ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|vs|approx|resp|cf|no|fig|max|min)\.$", re.I)
"""Pattern of an abbreviation whose full stop ends no sentence."""
CELL = re.compile(rf"\s*+(?:about|around|approx\.?|up to|[~<>=≈≥≤*(+])*+\s*+{_N}(?P<percent>\s?%)?", re.I)
"""Pattern of a table's cell that is one number."""
CELL_WORD = re.compile(rf"\s*{WORD}\b", re.I)
"""Pattern of a cell whose number is in words."""
CELL_MORE = re.compile(rf"{NUMBER}|:\s?\d")
"""Pattern of a second number of a cell."""
TIME_COLUMN = re.compile(
    r"[(\[,]\s*(?P<unit>ns|us|ms|s|(?:nano|micro|milli)?seconds)\b|\b(?P<bare>ns|us|ms)\s*$", re.I
)
"""Pattern of the heading of a column with times, which ends in their unit."""
FLOOR_COLUMN = re.compile(r"\bfloor\b|\broofline\b", re.I)
"""Pattern of the heading of a column with shares of the floor."""
RATE_COLUMN = re.compile(
    r"(?:\b|(?<=\d))(?P<prefix>[kmgtp])?(?:i?b(?:/s|ps|\s+per\s+second)|flops?/s|(?<=[kmgtp])flops)\b"
    r"|\b[a-z]+(?:/s|\s+per\s+second)\b",
    re.I,
)
"""Pattern of the heading of a column with rates, as GB/s or FLOP/s."""
RATIO_COLUMN = re.compile(
    r"speed-?up|\bratio\b|\bfaster\b|\bas fast\b"
    r"|\b(?:gain|factor|improvement|x)\b(?:\s+(?:over|vs\.?|against)\b|\s*$)"
    rf"|^\s*(?:vs\.?|over|against)\s+{_LIBRARY}",
    re.I,
)
"""Pattern of the heading of a column with speedups."""
INTERVAL_COLUMN = re.compile(r"interval|\bci\b|95\s?%", re.I)
"""Pattern of the heading of a column with intervals."""
