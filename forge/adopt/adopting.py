"""`adopt`: registers a registry's operations with torch, follows its publications, and takes it all back."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forge.adopt.advice import Advice, Build, advise
from forge.adopt.deciding import BACKENDS, Backend, Decider
from forge.adopt.described import OperationForm, parse_described
from forge.adopt.operation import NAMESPACE, AdoptedOperation
from forge.adopt.plan_function import prepare_launcher
from forge.adopt.ranks import is_one_of_several, require_same_generation
from forge.adopt.reference import load_reference, require_signature
from forge.adopt.refusal import WhyNot
from forge.adopt.settings import (
    Mode,
    Settings,
    checked,
    fallbacks,
    require_fit,
    require_trust,
    wanted_operations,
)
from forge.adopt.shadow import write_doubt
from forge.adopt.tally import REPORT_VERSION, Report, Tally
from forge.errors import BlobCorrupt, EnvironmentUnfit, UsageError
from forge.lookup.policy import STRICT, Policy
from forge.lookup.registry import Registry

if TYPE_CHECKING:
    import torch

Function = Callable[..., object]
SWITCH = "FORGE_ADOPT"
"""Environment variable: `off` turns every call to the fallback."""
ATTEMPTS = 5
"""Number of times that the files under ops/ are read while another process publishes. A try fails only if a
publication falls within it."""


class Adopted:
    """The operations of one registry in this process. Made by `adopt`; `close` takes them back."""

    def __init__(self, registry: Registry, settings: Settings) -> None:
        self.settings = settings
        self._registry = registry
        self._tally = Tally()
        self._decider = Decider(registry, settings.backends, settings.policy, self._tally)
        self._doubts: list[dict[str, object]] = []
        self._ended = threading.Event()
        self._off = WhyNot("off", f"{SWITCH}=off") if os.environ.get(SWITCH, "").lower() == "off" else None
        self._apart = False
        """True while ranks have different generations."""
        self.forked = False
        """True in a child of the process that adopted."""
        self._library: torch.library.Library | None = None
        self.operations: dict[str, AdoptedOperation] = {}

    def register(self) -> None:
        """Read what the registry says of each operation, then register all of them with torch."""
        import torch

        for op in self.settings.ops:
            described, reference = _read(self._registry, op)
            own = self.settings.fallback.get(op)
            self.operations[op] = AdoptedOperation(
                described,
                load_reference(described, reference) if own is None else require_signature(described, own),
                self._decider,
                self._tally,
                strict=self.settings.strict,
                shadow=self.settings.shadow,
                breached=self._breached,
            )
        if "plan" in self.settings.backends:
            prepare_launcher()
        self._library = torch.library.Library(NAMESPACE, "FRAGMENT")
        for operation in self.operations.values():
            operation.register(self._library, transparent=self.settings.mode == "transparent")
        if self._off is not None:
            self._stop(self._off)
        if self.settings.refresh_s and not is_one_of_several():
            threading.Thread(target=self._follow, name="forge-adopt-refresh", daemon=True).start()

    def refresh(self) -> bool:
        """Take up a newer publication; return whether there was one. Calls that follow are decided anew.

        Where torch.distributed is in use, every rank must call it. Raise UsageError if ranks have different
        generations; every call then takes the fallback until they agree.
        """
        changed = self._registry.refresh()
        try:
            require_same_generation(self._registry.generation)
        except UsageError as error:
            self._apart = True
            self._stop(WhyNot("ranks", error.message))
            raise
        if self._apart:
            self._apart = False
            self._stop(self._off)
        elif changed:
            self._forget()
        return changed

    @property
    def generation(self) -> str:
        """The digest of the snapshot that decides."""
        return self._registry.generation

    def prepare(
        self, shapes: Mapping[str, Iterable[Mapping[str, int]]], *, dtype: str, device: str = "cuda"
    ) -> list[dict[str, object]]:
        """Load and run each operation once at each shape, so that a capture may follow; return what each takes.

        The operands are zeros, contiguous, and the scalars the defaults.
        """
        import torch

        taken = []
        for op, listed in shapes.items():
            operation = self._operation(op)
            for shape in listed:
                operands = _zeros(operation.described, shape, dtype, device)
                with torch.no_grad():
                    self.call(op, *operands)
                taken.append(self.explain(op, *operands))
        return taken

    def call(self, op: str, *arguments: object) -> object:
        """Call an operation, as `torch.ops.forge.<op>` does."""
        import torch

        self._operation(op)
        answer: object = getattr(getattr(torch.ops, NAMESPACE), op)(*arguments)
        return answer

    def function(self, op: str, own: Function | None = None) -> Function:
        """Return what a model calls in place of `own`, its own function, by default the fallback.

        It calls `own` where the registry has no kernel for the operation, device and element type. torch.compile then
        sees and fuses `own`; so it does where no kernel fits sizes that don't vary in the program. Elsewhere it calls
        `torch.ops.forge.<op>`. In strict mode it always does.
        """
        operation = self._operation(op)
        return operation.function(None if own is None else require_signature(operation.described, own))

    def explain(self, op: str, *arguments: object) -> dict[str, object]:
        """Say what a call with these operands would take, and why not the others. Nothing runs and nothing counts.

        Nothing is loaded either: that a kernel can't be loaded is known after a call, or after `prepare`.
        """
        operation = self._operation(op)
        first: torch.Tensor = arguments[0]
        index = first.get_device() if first.is_cuda else None
        judged = operation.told(operation.filled(arguments), index)
        rejected = judged.result.rejected if judged.result is not None else []
        return {
            "op": op,
            "takes": judged.backend or "fallback",
            "kernel_id": judged.kernel.kernel_id if judged.kernel and judged.backend else None,
            "sha256": judged.kernel.sha256 if judged.kernel and judged.backend else None,
            "match": judged.result.match if judged.result is not None else None,
            "shape": judged.call.shape if judged.call else None,
            "reason": None if judged.backend else judged.refusal.reason,
            "detail": None if judged.backend else judged.refusal.detail,
            "passed_over": [[what, one.reason, one.detail] for what, one in judged.refusals],
            "rejected": [list(one) for one in rejected],
            "generation": self.generation,
        }

    def advise(
        self,
        build: Build,
        inputs: Sequence[object],
        *,
        compiled: bool = False,
        pairs: int = 11,
        window_s: float = 0.05,
    ) -> Advice:
        """Time a whole model with and without each operation, in pairs, and propose which to adopt.

        `build(op)` returns a model to call with `inputs`; it calls `op(name, own)` for each function that may be
        replaced. `compiled` applies torch.compile to each side. `window_s` is the least time of a window in seconds.
        """
        return advise(self.operations, build, inputs, compiled=compiled, pairs=pairs, window_s=window_s)

    def report(self) -> Report:
        """Return which kernels or fallbacks the calls of each operation have taken so far, and why."""
        health = self._registry.health()
        return Report(
            {
                "schema_version": REPORT_VERSION,
                "kind": "adoption",
                "generation": health.generation,
                "ledger_id": health.ledger_id,
                "ledger_seq": health.ledger_seq,
                "registry_error": health.error,
                "lines": self._tally.documents(),
                "withdrawn": {name: one.detail for name, one in sorted(self._decider.withdrawn.items())},
                "doubts": list(self._doubts),
            }
        )

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write the report as JSON, for `forge adopt report`."""
        Path(path).write_text(self.report().json() + "\n", encoding="utf-8")

    def close(self) -> None:
        """Take the operations back: `torch.ops.forge` has none of them any more."""
        self._ended.set()
        library, self._library = self._library, None
        if library is not None:
            library._destroy()
        if _open and _open[0] is self:
            _open.clear()

    def __enter__(self) -> "Adopted":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _operation(self, op: str) -> AdoptedOperation:
        if op not in self.operations:
            raise UsageError(f"{op!r:.100} isn't adopted: expected one of {', '.join(sorted(self.operations))}")
        return self.operations[op]

    def after_fork(self) -> None:
        """Let every call take the fallback in a forked child, until it adopts itself."""
        self.forked = True
        self._ended = threading.Event()
        self._tally.after_fork()
        self._decider.after_fork()
        for operation in self.operations.values():
            operation.after_fork()

    def _follow(self) -> None:
        """Take up publications until `close`. A publication that can't be read leaves the last good one deciding."""
        while not self._ended.wait(self.settings.refresh_s):
            if self._registry.refresh():
                self._forget()

    def _forget(self) -> None:
        for operation in self.operations.values():
            operation.forget()

    def _stop(self, refusal: WhyNot | None) -> None:
        for operation in self.operations.values():
            operation.stop(refusal)

    def _breached(self, kernel_id: str, document: dict[str, object]) -> None:
        """Withdraw a kernel that gave a wrong answer, and write the report for `forge kernel doubt`."""
        told = {"kernel_id": kernel_id, "generation": self.generation, **document}
        self._decider.withdrawn[kernel_id] = WhyNot("withdrawn", f"{kernel_id}: a shadow call differed")
        self._forget()
        try:
            path = str(write_doubt(told, self.settings.doubts))
        except OSError as error:
            path = f"couldn't be written: {error}"
        self._decider.withdrawn[kernel_id] = WhyNot("withdrawn", f"{kernel_id}: a shadow call differed: {path}")
        self._doubts.append({**told, "report": path})


def adopt(
    registry: str | os.PathLike[str],
    ops: Sequence[str] | None = None,
    *,
    trust: str,
    fallback: str | Mapping[str, Function] = "eager",
    backends: Sequence[Backend] = BACKENDS,
    mode: Mode = "opaque",
    strict: bool = False,
    shadow: float = 0.0,
    refresh_s: float = 1.0,
    policy: Policy = STRICT,
    key: str | os.PathLike[str] | None = None,
    doubts: str | os.PathLike[str] | None = None,
) -> Adopted:
    """Register `torch.ops.forge.<op>` for operations of a registry; return the handle to all of them.

    `trust="promoted"` says that the caller lets promoted code run in this process. `ops`: names, default all that the
    registry describes. `fallback`: a function for each operation, such as the engine's own; `eager` and operations
    left out take the published reference. `backends`: of `plan` and `source`, those that may run. `mode`: whether a
    compiler sees Triton sources. `strict` raises AdoptionRefused in place of a fallback. `shadow`: share of calls
    that are repeated with the fallback; `doubts` is the folder for the reports of wrong answers. `refresh_s`: seconds
    between two looks at the registry, or 0. `key`: see `Registry.open`. The same call twice gives the same handle.

    Raises UsageError for what can't be adopted, EnvironmentUnfit if torch lacks what is needed, and as Registry.open.
    """
    require_fit()
    opened = Registry.open(registry, key=key)
    require_trust(trust)
    names = wanted_operations(opened, ops)
    settings = Settings(
        root=opened.root,
        key=opened.key,
        ops=names,
        fallback=fallbacks(fallback, names),
        backends=backends,
        mode=mode,
        strict=strict,
        shadow=shadow,
        refresh_s=refresh_s,
        policy=policy,
        doubts=None if doubts is None else os.fspath(doubts),
    )
    return _only_handle(opened, checked(settings))


def _only_handle(registry: Registry, settings: Settings) -> Adopted:
    """Return this process's handle for these settings; raise UsageError if another one is open."""
    with _opening[0]:
        if _open and _open[0].forked:
            _open[0].close()
        if _open and _open[0].settings == settings:
            return _open[0]
        if _open:
            raise UsageError(
                f"{_open[0].settings.root!r} is adopted in this process already, with other settings or another "
                "registry: close that handle first"
            )
        require_same_generation(registry.generation)
        adopted = Adopted(registry, settings)
        try:
            adopted.register()
        except BaseException:
            adopted.close()
            raise
        _open.append(adopted)
        return adopted


_open: list[Adopted] = []
"""The handle of this process; at most one."""
_opening = [threading.RLock()]


def _in_a_child() -> None:
    """Stop every kernel in a forked child: it has no refreshing thread, and no GPU."""
    _opening[0] = threading.RLock()
    for adopted in _open:
        adopted.after_fork()


os.register_at_fork(after_in_child=_in_a_child)


def _read(registry: Registry, op: str) -> tuple[OperationForm, bytes]:
    """Return an operation's description and its reference, although another process may publish meanwhile."""
    for _ in range(ATTEMPTS - 1):
        try:
            description, reference = registry.read_operation(op)
            return parse_described(op, description), reference
        except BlobCorrupt:
            if not registry.refresh():
                break
    description, reference = registry.read_operation(op)
    return parse_described(op, description), reference


def _zeros(op: OperationForm, shape: Mapping[str, int], dtype: str, device: str) -> "list[torch.Tensor]":
    """Return operands of zeros at a shape."""
    import torch

    from forge.adopt.described import TORCH_NAMES

    axes = {axis for axis, *_ in op.sources}
    if set(shape) != axes:
        raise UsageError(f"bad shape {dict(shape)!r:.200} for {op.op!r}: expected a size for each of {sorted(axes)}")
    if dtype not in op.dtypes:
        raise UsageError(f"bad dtype {dtype!r:.100} for {op.op!r}: expected one of {', '.join(op.dtypes)}")
    if device.partition(":")[0] == "cuda" and not torch.cuda.is_available():
        raise EnvironmentUnfit(
            f'torch {torch.__version__} finds no GPU for device {device!r}: prepare with device="cpu", or install a '
            "build of torch with CUDA"
        )
    return [
        torch.zeros(one.sizes(shape), dtype=getattr(torch, TORCH_NAMES[one.element or dtype]), device=device)
        for one in op.inputs
    ]
