"""Decides what a kind of calls takes: guards, then the registry's answer, then plan before source."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

from forge.adopt.choice import DeviceChoice, Failed, Function, HostChoice, checked_outputs
from forge.adopt.described import OperationForm
from forge.adopt.guards import ExaminedCall, KnownCall, KnownOperand, examine, examine_traced, fits_source, known_call
from forge.adopt.plan import LoadablePlan, read_plan
from forge.adopt.plan_function import DevicePlan
from forge.adopt.refusal import WhyNot
from forge.adopt.tally import CallKind, Tally
from forge.adopt.transparent import TracedSource, traceable
from forge.errors import ForgeError, LoadRefused
from forge.lookup.answer import BUILT_LANGUAGES, Kernel
from forge.lookup.policy import Policy

if TYPE_CHECKING:
    from forge.lookup.registry import Registry
    from forge.lookup.result import Result

Backend = Literal["plan", "source"]
STAYS = "the model's own function stays"
"""Words of a report for an operation that no promoted kernel answers."""
COMPILED = "compiled into a program, whose calls aren't counted"
"""Words of a report for an operation whose calls a compiler took into its program."""
BACKENDS: tuple[Backend, ...] = ("plan", "source")
"""Ways to run a promoted kernel, the first choice first."""


class CallDecision(NamedTuple):
    """What a kind of calls would take, and why not the others."""

    call: ExaminedCall | None
    kernel: Kernel | None
    backend: Backend | None
    refusals: tuple[tuple[str, WhyNot], ...]
    """What was passed over, in order: `plan`, `source` or `registry`, each with the reason."""
    result: "Result | None" = None

    @property
    def refusal(self) -> WhyNot:
        """The reason of a fallback: the last that was found."""
        return self.refusals[-1][1]


class Decider:
    """Judges and loads what one registry offers. Loaded code is kept, by digest and device."""

    def __init__(self, registry: "Registry", backends: Sequence[Backend], policy: Policy, tally: Tally) -> None:
        self._registry, self._backends, self._policy, self._tally = registry, backends, policy, tally
        self.withdrawn: dict[str, WhyNot] = {}
        """Kernels that no longer run in this process: they gave a wrong answer, or raised an exception."""
        self._abi: list[str] = []
        self._lock = Lock()
        self._plans: dict[tuple[str, str], LoadablePlan | None] = {}
        self._loaded: dict[tuple[str, str, int], DevicePlan] = {}
        self._unloadable: dict[tuple[str, str, str | None], WhyNot] = {}

    def after_fork(self) -> None:
        """Replace the lock in a forked process, since a thread of its parent may have held the old one."""
        self._lock = Lock()

    def judge(self, op: OperationForm, arguments: Sequence[object], index: int | None) -> CallDecision:
        """Return what a call would take; nothing is loaded but the plan's text."""
        if op.unfit is not None:
            return _refused(WhyNot("unfit_operation", op.unfit))
        call = examine(op, arguments, index)
        return _refused(call) if isinstance(call, WhyNot) else self._answered(op, call, self._by_backend)

    def judge_traced(self, op: OperationForm, arguments: Sequence[object]) -> CallDecision:
        """Return whether a call that a compiler traces may become the promoted source: Triton, on a GPU."""
        if op.unfit is not None:
            return _refused(WhyNot("unfit_operation", op.unfit))
        call = examine_traced(op, arguments)
        return _refused(call) if isinstance(call, WhyNot) else self._answered(op, call, self._in_source)

    def rule_out(self, op: OperationForm, operands: Sequence[KnownOperand]) -> tuple[KnownCall | None, WhyNot] | None:
        """Return what a call asks for and why no kernel could answer it, whatever its memory; None if one might."""
        if op.unfit is not None:
            return None, WhyNot("unfit_operation", op.unfit)
        slot = known_call(op, operands)
        if isinstance(slot, WhyNot):
            return None, slot
        whole = slot._replace(shape=None)
        if slot.gpu == "cpu" and "source" not in self._backends:
            return whole, WhyNot("own_function", f"no launch plan is for the processor; {STAYS}")
        asked = {"op": op.op, "gpu": slot.gpu, "dtype": slot.dtype}
        try:
            if not self._registry.may_answer(**asked, policy=self._policy):
                return whole, WhyNot("own_function", f"no kernel for this device and element type; {STAYS}")
            if slot.shape is None:
                return None
            kernel = self._registry.lookup(**asked, shape=slot.shape, policy=self._policy).kernel
        except ForgeError:
            return None  # the call itself says what is wrong with the registry
        if kernel is None or kernel.kernel_id in self.withdrawn:
            return slot, WhyNot("own_function", f"no kernel for this shape; {STAYS}")
        return None

    def _answered(
        self,
        op: OperationForm,
        call: ExaminedCall,
        choose: "Callable[[OperationForm, ExaminedCall, Kernel, Result], CallDecision]",
    ) -> CallDecision:
        """Ask the registry, and choose how the kernel that answers may run."""
        try:
            found = self._registry.lookup(
                op=op.op, gpu=call.gpu, dtype=call.dtype, shape=call.shape, policy=self._policy
            )
        except ForgeError as error:
            return CallDecision(call, None, None, (("registry", WhyNot("not_loadable", error.message)),))
        kernel = found.kernel
        if kernel is None:
            detail = "; ".join(f"{name}: {why}" for name, why in found.rejected[:3]) or "none is promoted"
            return CallDecision(call, None, None, (("registry", WhyNot("no_kernel", detail)),), found)
        if kernel.kernel_id in self.withdrawn:
            return CallDecision(call, kernel, None, (("process", self.withdrawn[kernel.kernel_id]),), found)
        return choose(op, call, kernel, found)

    def _in_source(self, op: OperationForm, call: ExaminedCall, kernel: Kernel, found: "Result") -> CallDecision:
        refusal = fits_source(op, call, kernel)
        if refusal is None and ("source" not in self._backends or kernel.language != "triton"):
            refusal = WhyNot("backend", f"a compiler sees no source of {kernel.kernel_id}")
        if refusal is not None:
            return CallDecision(call, kernel, None, (("source", refusal),), found)
        return CallDecision(call, kernel, "source", (), found)

    def _by_backend(self, op: OperationForm, call: ExaminedCall, kernel: Kernel, found: "Result") -> CallDecision:
        passed: list[tuple[str, WhyNot]] = []
        if call.gpu != "cpu":
            refusal = self._no_plan(op, call, kernel)
            if refusal is None:
                return CallDecision(call, kernel, "plan", (), found)
            passed.append(("plan", refusal))
        refusal = fits_source(op, call, kernel)
        if refusal is None and "source" not in self._backends:
            refusal = WhyNot("backend", f"the source isn't allowed, and no plan fits: {passed[-1:]}")
        if refusal is None:
            return CallDecision(call, kernel, "source", tuple(passed), found)
        return CallDecision(call, kernel, None, (*passed, ("source", refusal)), found)

    def _no_plan(self, op: OperationForm, call: ExaminedCall, kernel: Kernel) -> WhyNot | None:
        """Return why the kernel's launch plan doesn't fit the call; None if it does."""
        if "plan" not in self._backends:
            return WhyNot("backend", "plans aren't allowed")
        if kernel.shape is None or dict(kernel.shape) != call.shape:
            return WhyNot("no_kernel", f"its plan is for {dict(kernel.shape or {})}")
        if call.layout != "contiguous":
            return WhyNot("layout", "a plan is for contiguous operands")
        try:
            plan = self._plan(op, call, kernel)
        except ForgeError as error:
            return WhyNot("not_loadable", error.message)
        if plan is None:
            return WhyNot("no_kernel", f"{kernel.kernel_id} has no launch plan")
        if plan.scalars != call.scalars:
            return WhyNot("scalars", f"its plan is for {plan.scalars}")
        if call.alignment_bytes % plan.alignment_bytes:
            return WhyNot("alignment", f"{call.alignment_bytes} bytes; its plan asks for {plan.alignment_bytes}")
        return None

    def _plan(self, op: OperationForm, call: ExaminedCall, kernel: Kernel) -> LoadablePlan | None:
        key = (kernel.kernel_id, str(kernel.artifact_sha256))
        if key not in self._plans:
            self._plans[key] = read_plan(op, kernel, call.dtype)
        return self._plans[key]

    def load(
        self, op: OperationForm, judged: CallDecision, index: int | None, failed: Failed
    ) -> HostChoice | DeviceChoice | WhyNot:
        """Return the kernel that was judged to fit, loaded; a refusal if it can't be loaded here."""
        loaded = self._load(op, judged, index, failed)
        if isinstance(loaded, WhyNot):
            self._unloadable[_tried(judged)] = loaded
        return loaded

    def as_tried(self, judged: CallDecision) -> CallDecision:
        """Return the fallback in place of a kernel that a call of this publication couldn't load."""
        if judged.backend is None or (why := self._unloadable.get(_tried(judged))) is None:
            return judged
        return judged._replace(backend=None, refusals=(*judged.refusals, (judged.backend, why)))

    def _load(
        self, op: OperationForm, judged: CallDecision, index: int | None, failed: Failed
    ) -> HostChoice | DeviceChoice | WhyNot:
        assert judged.call is not None
        assert judged.kernel is not None
        assert judged.backend is not None
        assert judged.result is not None
        try:
            if judged.backend == "plan":
                function: Function = self._device_plan(op, judged.call, judged.kernel, index or 0)
            else:
                function = checked_outputs(self._source(judged.kernel, judged.result), len(op.returned))
        except ForgeError as error:
            return WhyNot("not_loadable", error.message)
        except Exception as error:  # noqa: BLE001 - promoted code may raise anything when it is imported
            return WhyNot("not_loadable", f"{judged.kernel.kernel_id} can't be imported: {error!r}")
        line = self._tally.line(self._taken(op, judged.call, judged.kernel, judged.backend))
        if index is None:
            return HostChoice(line, function, judged.kernel.kernel_id, failed)
        return DeviceChoice(line, function, judged.kernel.kernel_id, failed, index)

    def load_traceable(self, op: OperationForm, judged: CallDecision) -> TracedSource | None:
        """Return the promoted source in a form that a compiler sees; None if it has none. Its import may raise."""
        assert judged.call is not None
        assert judged.kernel is not None
        assert judged.result is not None
        function = traceable(self._source(judged.kernel, judged.result), has_scalars=bool(op.scalars))
        if function is None:
            return None
        line = self._tally.line(self._taken(op, judged.call, judged.kernel, "source"), COMPILED)
        return TracedSource(checked_outputs(function, len(op.returned)), line.hits.add)

    def _taken(self, op: OperationForm, call: ExaminedCall, kernel: Kernel, backend: str) -> CallKind:
        shape = tuple(call.shape.items())
        return CallKind(op.op, call.gpu, call.dtype, shape, backend, kernel.kernel_id, kernel.sha256, None)

    def _device_plan(self, op: OperationForm, call: ExaminedCall, kernel: Kernel, index: int) -> DevicePlan:
        key = (kernel.kernel_id, str(kernel.artifact_sha256), index)
        with self._lock:
            found = self._loaded.get(key)
            if found is None:
                plan = self._plan(op, call, kernel)
                if plan is None:
                    raise LoadRefused(
                        f"{kernel.kernel_id!r} has no launch plan: expected a kernel that was timed by one; "
                        "look it up again"
                    )
                found = self._loaded[key] = DevicePlan(plan, kernel.kernel_id, index)
            return found

    def _source(self, kernel: Kernel, result: "Result") -> Function:
        abi = self._abi_key() if kernel.language in BUILT_LANGUAGES else None
        return self._registry.load(result, trust="promoted", abi_key=abi)

    def _abi_key(self) -> str:
        """Return this machine's ABI; asking takes up to a second beside a GPU, so it is asked once."""
        from forge.lookup import abi_key

        with self._lock:
            if not self._abi:
                self._abi.append(abi_key())
            return self._abi[0]


def _refused(refusal: WhyNot) -> CallDecision:
    return CallDecision(None, None, None, (("guards", refusal),))


def _tried(judged: CallDecision) -> tuple[str, str, str | None]:
    """Return what a kernel that can't be loaded is remembered by, until the registry changes."""
    assert judged.kernel is not None
    assert judged.result is not None
    return judged.result.generation, judged.kernel.kernel_id, judged.backend
