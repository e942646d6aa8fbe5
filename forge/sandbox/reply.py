"""Turns the guest's untrusted reply bytes into typed values, or into a refusal.

Distrusts every byte: length, magic, call id, forms and the log were all written beside hostile code.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from forge.domain.verdict import Reason, ReasonCode
from forge.guest import wire


@dataclass(frozen=True)
class Returned:
    """A reply that says that every call returned. The forms are the guest's claim; the judge reads the bytes."""

    elapsed_ns: int
    """Nanoseconds by the host's clock from the release to the reply, and processor time from then to the stop."""
    outputs: tuple[wire.OutputForm, ...]
    device_ns: int = 0
    """Nanoseconds of a timed window by the device's clock; only those of a trusted guest count."""
    completed: int = 0
    """Number of calls, or of bytes in the arena."""
    addresses: tuple[int, ...] = ()
    """Where the guest says that the outputs of a chain lie in its memory, call by call."""


@dataclass(frozen=True)
class Refused:
    """A failure of the guest that is the candidate's."""

    reason: Reason
    log: str = ""
    signal: int | None = None
    """Signal that ended the guest's process, if one did."""
    from_load: bool = False
    """Whether other work on the machine may be the cause: wall time ran out, or the machine's memory."""
    raised: bool = False
    """Whether the guest says that the call raised an exception; the process goes on."""


STATUS_CODES: dict[int, tuple[ReasonCode, str]] = {
    wire.LOAD_FAILED: ("RUNTIME_ERROR", "kernel.py raised an exception while it was imported"),
    wire.NO_ENTRY_POINT: ("BAD_SUBMISSION", "kernel.py has no function of the entry point's name"),
    wire.RAISED: ("RUNTIME_ERROR", "the call raised an exception"),
    wire.RAISED_TO_END: (
        "RUNTIME_ERROR",
        "the call raised what isn't an Exception, such as SystemExit, which ends a caller's program",
    ),
    wire.OUT_OF_MEMORY: ("OUT_OF_MEMORY", "the import or the call found too little memory"),
    wire.NO_ROOM: ("OUT_OF_MEMORY", "the call's operands found too little memory"),
    wire.WRONG_TYPE: (
        "INCORRECT_SHAPE",
        "the call didn't return a plain tuple (no list, no named tuple) with exactly one torch.Tensor for each "
        "output. Where there is one output, that tensor alone will do. No such tensor is a parameter (detach it), a "
        "sparse one (`to_dense()`) or a view that negates when it is read (`resolve_neg()`)",
    ),
    wire.OTHER_NESTING: (
        "INCORRECT_SHAPE",
        "the call's results are nested differently from the reference's, or have other keys: the log names both",
    ),
    wire.ALIASES_AN_INPUT: ("STATE_CARRIED", "an output is an input's memory: the caller's next write changes it"),
    wire.ALIASES_AN_OUTPUT: (
        "STATE_CARRIED",
        "an output is the memory of another output, of this call or an earlier one: a write to one changes the other",
    ),
    wire.WRONG_DEVICE: ("INCORRECT_STRIDES", "an output lies in another device's memory than the inputs"),
    wire.OTHER_STATE: (
        "BAD_SUBMISSION",
        "the module's state dict has other parameters or sizes than the reference's: the log names them. Keep the "
        "reference's names and sizes, or submit a function that takes the arguments and then these tensors",
    ),
    wire.CHANGED_AN_INPUT: (
        "INPUT_MUTATED",
        "an input tensor has other sizes, strides, memory or flags than before the call, or a list or dictionary of "
        "the arguments has other content (the log names it): the caller goes on using it",
    ),
    wire.CHANGED_A_SETTING: (
        "STATE_CARRIED",
        "the import or a call left a setting of the process changed (of torch, numpy or the processor; the log names "
        "it). The caller continues in the same process",
    ),
    wire.CHANGED_A_GENERATOR: (
        "STATE_CARRIED",
        "the import or a call drew from, or seeded, a generator of random numbers that the whole process shares, as "
        "nn.Dropout does in training mode. Call `self.train(False)`, pass `generator=`, or don't use random numbers",
    ),
    wire.CHANGED_AN_OUTPUT: (
        "STATE_CARRIED",
        "an earlier call's output was overwritten by a call at another shape: a caller who keeps it loses its values",
    ),
    wire.IN_A_DESTINATION: (
        "TAMPERING",
        "an output lies in the memory that the harness copies outputs to: return a tensor of the call's own",
    ),
    wire.NO_CONFIGURATION: (
        "BAD_SUBMISSION",
        "an autotuned kernel has no configuration, or none that can be launched here (the log names it): give "
        "`triton.autotune` at least one that always can",
    ),
    wire.PRUNED_BY_DATA: (
        "BAD_SUBMISSION",
        "the pruning of an autotuned kernel reads the content of tensors (the log names it). Let sizes, strides and "
        "types alone decide, since a tuning holds for every content",
    ),
    wire.NEEDS_GPU: (
        "INFRASTRUCTURE",
        "the call uses what Triton's interpreter can't compute, such as inline assembly",
    ),
    wire.BUILD_FAILED: ("COMPILE_ERROR", "the build failed"),
}
"""Reason code and message by the status of a reply."""

OUTPUTS_TOGETHER = Reason(
    code=STATUS_CODES[wire.ALIASES_AN_OUTPUT][0], message=STATUS_CODES[wire.ALIASES_AN_OUTPUT][1]
)
"""Reason for outputs that the host finds in each other's memory: the same as a guest's own."""
OTHER_STATE_MESSAGE = STATUS_CODES[wire.OTHER_STATE][1]
"""Message of the refusal of a module with other parameters, to which the host adds the reference's names."""
RAISES = frozenset({wire.RAISED, wire.OUT_OF_MEMORY, wire.NO_CONFIGURATION})
"""Statuses of a call that ended with an exception which callers catch."""


def parse_reply(
    untrusted: bytes, *, call_id: int, elapsed_ns: int, calls: int | None, interpreted: bool = False
) -> Returned | Refused:
    """Read one reply; a malformed reply, or a reply to another call, is tampering.

    Only an `interpreted` call can lack a GPU. Elsewhere a candidate could end each verification that goes against it
    without a verdict, and be asked again until the questions suit it.
    """
    try:
        record = wire.unpack_record(untrusted)
    except ValueError as error:
        return Refused(Reason(code="TAMPERING", message=f"the reply channel was written to: {error}"))
    if record.call_id != call_id:
        return Refused(Reason(code="TAMPERING", message="a reply answers a call that wasn't made"))
    if record.status == wire.NEEDS_GPU and not interpreted:
        return Refused(Reason(code="TAMPERING", message="a reply says what only Triton's interpreter lacks"))
    if record.status in (wire.WRONG_FORM, wire.WRONG_ELEMENT_TYPE):
        return Refused(_wrong_form(record))
    if record.status != wire.DONE:
        code, message = STATUS_CODES[record.status]
        return Refused(Reason(code=code, message=message), raised=record.status in RAISES)
    if calls is not None and record.completed != calls:
        return Refused(Reason(code="TAMPERING", message="a reply counts other calls than were made"))
    return Returned(elapsed_ns, record.outputs, record.device_ns, record.completed, record.addresses)


def _wrong_form(record: wire.Record) -> Reason:
    described = ", ".join(f"{o.element_type}{list(o.sizes)}" for o in record.outputs)
    if record.status == wire.WRONG_ELEMENT_TYPE:
        return Reason(code="INCORRECT_DTYPE", message=f"the outputs have another element type: {described}")
    return Reason(code="INCORRECT_SHAPE", message=f"the outputs have another shape: {described}")


ARTIFACT_ENDINGS = (".so", ".cubin")
"""Endings of files that a builder may return: code for the host, and code for a GPU."""


@dataclass(frozen=True)
class ArtifactFile:
    """One built file, as bytes."""

    name: str
    content: bytes


def parse_artifact(untrusted: bytes, *, endings: tuple[str, ...] = ARTIFACT_ENDINGS) -> tuple[ArtifactFile, ...]:
    """Unpack the builder's files; raise ValueError for names with a path, or lengths that don't add up."""
    if len(untrusted) < wire.ARTIFACT_COUNT.size:
        raise ValueError("the builder handed over nothing")
    (count,) = wire.ARTIFACT_COUNT.unpack_from(untrusted)
    cursor, files = wire.ARTIFACT_COUNT.size, []
    for _ in range(min(count, 64)):
        if cursor + wire.ARTIFACT_ENTRY.size > len(untrusted):
            raise ValueError("the built files end too early")
        raw_name, size = wire.ARTIFACT_ENTRY.unpack_from(untrusted, cursor)
        cursor += wire.ARTIFACT_ENTRY.size
        name = raw_name.rstrip(b"\0").decode("ascii")
        if PurePosixPath(name).name != name or not name.endswith(endings) or name.startswith("."):
            raise ValueError(
                f"a built file is called {name!r}, expected the plain name of a shared object or a cubin"
            )
        if cursor + size > len(untrusted):
            raise ValueError("the built files end too early")
        files.append(ArtifactFile(name, untrusted[cursor : cursor + size]))
        cursor += size
    if count > 64 or cursor != len(untrusted) or len({f.name for f in files}) != len(files):
        raise ValueError("the built files don't add up")
    return tuple(files)
