"""What the caller of `adopt` asks for, checked before anything is registered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from forge.adopt.deciding import BACKENDS, Backend
from forge.errors import EnvironmentUnfit, UnknownName, UsageError
from forge.lookup.policy import Policy
from forge.lookup.registry import Registry

Function = Callable[..., object]
NEEDED = ("register_fake", "Library", "triton_op")
"""Names in torch.library that adoption needs; torch 2.6 and newer have them."""
Mode = Literal["opaque", "transparent"]
"""Part of an operation that torch.compile sees: its name alone (`opaque`), or a Triton source (`transparent`), which
it may fuse with its own code."""
MODES: tuple[Mode, ...] = get_args(Mode)
LEAST_SHADOW = 1e-6
"""Smallest share of calls that may be compared with the fallback, besides none. Chosen; at one in a million, an
engine with 10,000 calls a second compares one call in 100 s."""
LONGEST_REFRESH_S = 3600.0
"""Longest time between two looks for a newer publication, in seconds. A revoked kernel runs until the next look."""


class Settings(NamedTuple):
    """What one adoption does; a second one with equal settings is the same."""

    root: str
    key: str | None
    """Verifier key that must vouch for each publication."""
    ops: tuple[str, ...]
    fallback: Mapping[str, Function]
    backends: Sequence[Backend]
    mode: Mode
    strict: bool
    shadow: float
    refresh_s: float
    policy: Policy
    doubts: str | None


def require_fit() -> None:
    """Raise unless torch is here with all that is needed, and neither a capture nor a compilation is running."""
    try:
        import torch
    except ImportError as error:
        raise EnvironmentUnfit(f"adoption needs torch, which can't be imported: {error}; install torch") from error
    missing = [name for name in NEEDED if not hasattr(torch.library, name)]
    if missing:
        raise EnvironmentUnfit(
            f"torch {torch.__version__} has no torch.library.{missing[0]}: expected 2.6 or newer; upgrade torch"
        )
    if torch.compiler.is_compiling():
        raise UsageError("adopt was called inside a function that torch.compile traces: adopt before compiling")
    if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        raise UsageError("adopt was called while a CUDA graph is captured: adopt and prepare before the capture")
    if torch.cuda._is_in_bad_fork():
        raise UsageError("adopt was called in a child that was forked after CUDA began: start it by spawn instead")


def require_trust(trust: str) -> None:
    """Raise UsageError unless the caller lets promoted code run in this process."""
    if trust != "promoted":
        raise UsageError(f'bad trust {trust!r:.100}: say trust="promoted" to run promoted code in this process')


def wanted_operations(registry: Registry, ops: Sequence[str] | None) -> tuple[str, ...]:
    """Return the operations to adopt, by default all that the registry describes; raise UsageError or UnknownName."""
    if isinstance(ops, str):
        raise UsageError(f"bad ops {ops!r:.100}: expected a list of names")
    known = registry.operations
    if not known:
        registry.read_operation("")  # says that nothing is described
    names = tuple(sorted(known) if ops is None else dict.fromkeys(ops))
    for name in names:
        if name not in known:
            raise UnknownName("operation", str(name), sorted(known))
    if not names:
        raise UsageError("no operation to adopt: expected at least one name in ops")
    return names


def checked(settings: Settings) -> Settings:
    """Return the settings in their plain form; raise UsageError for a value that makes no sense."""
    if not isinstance(settings.policy, Policy):
        raise UsageError(f"bad policy {settings.policy!r:.100}: expected a forge.lookup.Policy")
    if type(settings.strict) is not bool:
        raise UsageError(f"bad strict {settings.strict!r:.100}: expected True or False")
    backends, shadow, refresh_s = settings.backends, settings.shadow, settings.refresh_s
    if not backends or isinstance(backends, str) or not set(backends) <= set(BACKENDS):
        raise UsageError(f"bad backends {backends!r:.100}: expected some of {', '.join(BACKENDS)}")
    if settings.mode not in MODES:
        raise UsageError(f"bad mode {settings.mode!r:.100}: expected one of {', '.join(MODES)}")
    if not (isinstance(shadow, int | float) and (shadow == 0 or LEAST_SHADOW <= shadow <= 1)):
        raise UsageError(f"bad shadow {shadow!r:.100}: expected 0, or a share of calls from {LEAST_SHADOW} to 1")
    if not (isinstance(refresh_s, int | float) and 0 <= refresh_s <= LONGEST_REFRESH_S):
        raise UsageError(f"bad refresh_s {refresh_s!r:.100}: expected 0 to {LONGEST_REFRESH_S} seconds")
    in_order = tuple(one for one in BACKENDS if one in backends)
    return settings._replace(backends=in_order, shadow=float(shadow), refresh_s=float(refresh_s))


def fallbacks(given: str | Mapping[str, Function], names: Sequence[str]) -> Mapping[str, Function]:
    """Return the caller's functions by operation, none for `eager`; raise UsageError or UnknownName."""
    if given == "eager":
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f'bad fallback {given!r:.100}: expected "eager", or a function for each operation')
    for name in given:
        if name not in names:
            raise UnknownName("operation in fallback", str(name), list(names))
    return dict(given)
