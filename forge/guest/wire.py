"""Runs beside hostile code. Defines the messages between host and guest; the guest has no other way to answer.

Three descriptors cross the wall. `COMMANDS` carries length-prefixed JSON and fixed-size frames from the host.
`REPLIES` carries exactly one fixed-size record for each command from the guest. `ARENA` is shared memory of the host:
the host writes inputs there, the guest outputs. A reply has no pickle and no text. The host distrusts every field of
it (see forge/sandbox/reply.py).
"""

import enum
import struct
from typing import NamedTuple

COMMANDS, REPLIES, ARENA = 3, 4, 5
"""Numbers of the three descriptors in the guest."""


class Ways(enum.IntFlag):
    """Ways in which programs make calls; a harness alone makes them in none."""

    INFERENCE = enum.auto()
    """Under `torch.inference_mode()`."""
    THREAD = enum.auto()
    """From another thread than the first one, on a CPU."""
    OTHER_TYPE = enum.auto()
    """With another default type of torch's than fp32."""
    PARAMETERS = enum.auto()
    """With `nn.Parameter`s for weights."""
    COLLECTED = enum.auto()
    """With garbage collection enabled."""
    OWN_MEMORY = enum.auto()
    """With operands in memory of torch's own, one weight in all calls, and outputs as inputs of the next call."""
    GRADIENTS = enum.auto()
    """Where torch records gradients, as it does unless a program says otherwise."""


NO_WAYS = Ways(0)
SERVED = Ways.INFERENCE | Ways.THREAD | Ways.OTHER_TYPE | Ways.PARAMETERS | Ways.COLLECTED
"""Ways of a call from a serving program, whose operands the host can see while it is made."""
COMMAND_HEADER = struct.Struct("!4sI")
"""Header of a command: its kind, and the length of the body that follows."""
SETUP, GO, CHAIN, TIME = b"SETU", b"GO..", b"CHAI", b"TIME"
"""Kinds of commands. `SETUP` has a JSON body: what to load, how the arena is laid out, or which call to list as a
plan. `GO` has a `GO_BODY`, `CHAIN` a `CHAIN_BODY`, `TIME` a `TIME_BODY`."""
GO_BODY = struct.Struct("!QIIIIIII4d")
"""Body of `GO`: call id, function index, first set, number of sets, cycles over them, and whether to retain. Then
come the `Ways` of the calls, the byte with which C's allocator fills memory (0: none), and up to four scalars.

With one cycle, each set in turn gets its content, is called, and its outputs are copied out. With more cycles, all
sets get their content before the first one. The outputs of the last cycle are copied out after it.

Retaining copies the outputs out only after the last call, so that a function that hands out one buffer twice shows.
Several cycles that retain are calls on one set; the places of its outputs have one more axis in front, with an entry
per cycle."""
CHAIN_BODY = struct.Struct("!QIIII4d")
"""Body of `CHAIN`: call id, function index (`IDLE`: no call is made), first set, and number of calls. Then comes
whether to copy the outputs to the arena after the last call, then up to four scalars. Each call's outputs say which
set comes next: see `next_in_chain`."""
MOST_IN_CHAIN = 48
"""Number of calls of a chain, at most. Chosen: a reply has an address for each output of each call, and a pipe takes
no more than 4096 bytes at once."""
IDLE = 0xFFFFFFFF
"""Function index that stands for no function; such a release takes only the cost of the path."""
CHAIN_MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd constant near 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4)."""
TIME_BODY = struct.Struct("!QIIIiII4d")
"""Body of `TIME`, in this order. First the call id, the function index, the replays of the graph of all sets, and the
rotation offset of the contents. Then the set whose outputs are copied out (`NO_SET`: none). Then whether to replay
the last window's graph unchanged, whether the operands stay in the cache, and up to four scalars.
Only trusted guests get this command."""
NO_SET = -1
"""Set index that stands for no set."""

MAX_OUTPUTS, MAX_DIMENSIONS = 4, 8
"""Number of outputs in a reply, and of dimensions of an output, at most."""
RECORD_HEADER = struct.Struct("!4sQBBHIQ")
"""Header of a reply: magic, call id, status, number of described outputs, number of addresses, completed calls,
nanoseconds on the device."""
RECORD_OUTPUT = struct.Struct("!BBH8q8q")
"""Form of one output: element type, number of dimensions, zero, sizes, strides in elements."""
MOST_ADDRESSES = MOST_IN_CHAIN * MAX_OUTPUTS
"""Number of addresses in a reply, at most; each is an unsigned 64-bit integer."""
RECORD_MAGIC = b"RPLY"
_ADDRESSES_FROM = RECORD_HEADER.size + MAX_OUTPUTS * RECORD_OUTPUT.size
RECORD_BYTES = _ADDRESSES_FROM + MOST_ADDRESSES * 8

DONE = 0
LOAD_FAILED = 1
NO_ENTRY_POINT = 2
RAISED = 3
OUT_OF_MEMORY = 4
WRONG_TYPE = 5
"""Status of outputs that aren't exactly torch.Tensor, or of a wrong number of outputs."""
WRONG_FORM = 6
"""Status of tensors of another shape; the record describes them."""
BUILD_FAILED = 7
WRONG_ELEMENT_TYPE = 8
"""Status of tensors of the right shape, but of another element type; the record describes them."""
ALIASES_AN_INPUT = 9
"""Status of an output that is an input's memory; checked if outputs are retained."""
WRONG_DEVICE = 10
"""Status of an output in another device's memory than the inputs."""
ALIASES_AN_OUTPUT = 11
"""Status of an output that is the memory of an earlier call's output; checked if outputs are retained."""
OTHER_STATE = 12
"""Status of a module whose state dict has other names or sizes than the task's."""
CHANGED_AN_INPUT = 13
"""Status of an input with other sizes, strides, memory or flags than before the calls."""
CHANGED_A_SETTING = 14
"""Status of a process whose settings differ from those before the import, or before the calls."""
CHANGED_A_GENERATOR = 15
"""Status of a process-wide random number generator that was drawn from or seeded."""
CHANGED_AN_OUTPUT = 16
"""Status of a retained output of an earlier release that was written to."""
IN_A_DESTINATION = 17
"""Status of an output that lies where the harness copies outputs to: the copy would cost nothing."""
NO_CONFIGURATION = 18
"""Status of an autotuned kernel without a configuration that can be launched."""
PRUNED_BY_DATA = 19
"""Status of an autotuned kernel whose pruning reads the content of tensors."""
RAISED_TO_END = 20
"""Status of a call that raised what isn't an `Exception`, such as SystemExit."""
NO_ROOM = 21
"""Status of any command after a layout whose operands found too little memory."""
NEEDS_GPU = 22
"""Status of a call that uses what no interpreter can compute."""
OTHER_NESTING = 23
"""Status of results that are nested differently from the reference's, or stand under other keys."""

ARTIFACT_COUNT = struct.Struct("!I")
ARTIFACT_ENTRY = struct.Struct("!64sQ")
"""Entry of a built file in the arena: its name, padded with zero bytes, and its size; the bytes follow."""

MOST_IN_A_PLAN = 64
"""Number of steps, of workspaces, of inputs and of outputs in a plan, at most; forge/domain/plan.py allows no
more."""

ELEMENT_TYPES = (
    *("other", "float32", "float16", "bfloat16", "float64", "int32", "int64", "bool"),
    *("float8_e4m3fn", "int8", "uint8"),
)
"""Torch's names of element types; a record gives the position in this list."""


class OutputForm(NamedTuple):
    """The form of one returned tensor, as the guest describes it."""

    element_type: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Record(NamedTuple):
    """One reply, unpacked but not checked any further."""

    call_id: int
    status: int
    completed: int
    outputs: tuple[OutputForm, ...]
    device_ns: int = 0
    """Nanoseconds of a timed window on the device."""
    addresses: tuple[int, ...] = ()
    """Address in the guest of each output of a chain, call by call."""


def next_in_chain(total: int, waiting: list[int]) -> int:
    """Remove the next set from the waiting ones and return it; the sum of the last call's output words decides which.

    Both sides of the wall compute it. The sum is modulo 2^64, so that the order of adding doesn't matter.
    """
    mixed = (total * CHAIN_MULTIPLIER) % 2**64 >> 32
    return waiting.pop(mixed % len(waiting))


def pack_command(kind: bytes, body: bytes) -> bytes:
    """Return the command as a frame."""
    return COMMAND_HEADER.pack(kind, len(body)) + body


def pack_record(record: Record) -> bytes:
    """Return the reply as its fixed number of bytes."""
    parts = [
        RECORD_HEADER.pack(
            *(RECORD_MAGIC, record.call_id, record.status, len(record.outputs), len(record.addresses)),
            *(record.completed, record.device_ns),
        )
    ]
    for output in record.outputs:
        dimensions = len(output.sizes)
        padding = (0,) * (MAX_DIMENSIONS - dimensions)
        code = ELEMENT_TYPES.index(output.element_type) if output.element_type in ELEMENT_TYPES else 0
        parts.append(RECORD_OUTPUT.pack(code, dimensions, 0, *output.sizes, *padding, *output.strides, *padding))
    described = b"".join(parts).ljust(_ADDRESSES_FROM, b"\0")
    return (described + struct.pack(f"!{len(record.addresses)}Q", *record.addresses)).ljust(RECORD_BYTES, b"\0")


def unpack_record(untrusted: bytes) -> Record:
    """Unpack exactly `RECORD_BYTES`; raise ValueError for anything that `pack_record` wouldn't have written."""
    if len(untrusted) != RECORD_BYTES:
        raise ValueError(f"a reply has {len(untrusted)} bytes, expected {RECORD_BYTES}")
    magic, call_id, status, described, addressed, completed, device_ns = RECORD_HEADER.unpack_from(untrusted)
    if magic != RECORD_MAGIC or addressed > MOST_ADDRESSES or described > MAX_OUTPUTS or status > OTHER_NESTING:
        raise ValueError("a reply's header is malformed")
    outputs = tuple(_unpack_output(untrusted, RECORD_HEADER.size + i * RECORD_OUTPUT.size) for i in range(described))
    addresses = struct.unpack_from(f"!{addressed}Q", untrusted, _ADDRESSES_FROM)
    record = Record(call_id, status, completed, outputs, device_ns, addresses)
    if pack_record(record) != untrusted:
        raise ValueError("a reply has bytes where there should be none")
    return record


def _unpack_output(untrusted: bytes, offset: int) -> OutputForm:
    code, dimensions, _, *numbers = RECORD_OUTPUT.unpack_from(untrusted, offset)
    if code >= len(ELEMENT_TYPES) or dimensions > MAX_DIMENSIONS:
        raise ValueError("a reply describes an impossible tensor")
    sizes, strides = numbers[:dimensions], numbers[MAX_DIMENSIONS : MAX_DIMENSIONS + dimensions]
    return OutputForm(ELEMENT_TYPES[code], tuple(sizes), tuple(strides))
