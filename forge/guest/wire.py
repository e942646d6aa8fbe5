"""Runs beside hostile code. The messages between host and guest: the guest's only voice.

Three descriptors cross the wall. `COMMANDS` carries length-prefixed JSON and fixed-size `go` frames from the host,
`REPLIES` exactly one fixed-size record for each command from the guest, and `ARENA` is shared memory that
the host made: inputs are written there by the host, outputs by the guest. There is no pickle and no text in
a reply. The host distrusts every field of it (see forge/sandbox/reply.py).
"""

import struct
from dataclasses import dataclass

COMMANDS, REPLIES, ARENA = 3, 4, 5

COMMAND_HEADER = struct.Struct("!4sI")
"""Kind, and the length of the body that follows."""
SETUP, GO, CHAIN, TIME = b"SETU", b"GO..", b"CHAI", b"TIME"
"""`SETUP` has a JSON body: what to load, how the arena is laid out, or which call to list as a plan. `GO` has a
`GO_BODY`, `CHAIN` a `CHAIN_BODY`, `TIME` a `TIME_BODY`."""
GO_BODY = struct.Struct("!QIIIIIII4d")
"""Call id, function index, first set, how many sets, cycles over them, whether to retain, which of `ELEMENT_TYPES` is
torch's default type meanwhile, the byte that C's allocator fills memory with (0: none), and up to four scalars.

One cycle gives each set its content, calls, and copies the outputs out, one set after the other. With more of them
all content is given before the first, and outputs are those of the last, copied out after it.

More cycles that retain are calls on one set, whose outputs' places have one more axis in front: one entry per cycle.

To retain is to copy the outputs out only after the last call: a function that hands out one buffer twice shows.
"""
CHAIN_BODY = struct.Struct("!QIII4d")
"""Call id, function index (`IDLE`: no call is made), the set to begin with, number of calls, and up to four scalars.

Each call's outputs say which set comes next: see `next_in_chain`.
"""
IDLE = 0xFFFFFFFF
"""A function index that stands for none: what such a release takes is the cost of the path."""
CHAIN_MULTIPLIER = 0x9E3779B97F4A7C15
"""Odd constant near 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming 3, section 6.4)."""
TIME_BODY = struct.Struct("!QIIIiI4d")
"""Call id, function index, replays of the graph of all sets, how far contents move on, which set's outputs to copy
out (`NO_SET`: none), whether to replay the last window's graph as it is, and up to four scalars. Only trusted guests
are asked."""
NO_SET = -1

MAX_OUTPUTS, MAX_DIMENSIONS = 4, 8
RECORD_HEADER = struct.Struct("!4sQBBHIQ")
"""Magic, call id, status, outputs described, zero, calls completed, nanoseconds on the device."""
RECORD_OUTPUT = struct.Struct("!BBH8q8q")
"""Element type, dimensions, zero, sizes, strides in elements."""
RECORD_MAGIC = b"RPLY"
RECORD_BYTES = RECORD_HEADER.size + MAX_OUTPUTS * RECORD_OUTPUT.size

DONE = 0
LOAD_FAILED = 1
NO_ENTRY_POINT = 2
RAISED = 3
OUT_OF_MEMORY = 4
WRONG_TYPE = 5
"""Not exactly a torch.Tensor, or not as many of them as the operation has outputs."""
WRONG_FORM = 6
"""Tensors, but of another shape; described in the record."""
BUILD_FAILED = 7
WRONG_ELEMENT_TYPE = 8
"""Tensors of the right shape, but of another element type; described in the record."""
ALIASES_AN_INPUT = 9
"""An output is an input's memory; looked for where outputs are retained."""
WRONG_DEVICE = 10
"""An output lies in another device's memory than the inputs."""
ALIASES_AN_OUTPUT = 11
"""An output is the memory of an earlier call's; looked for where outputs are retained."""
OTHER_STATE = 12
"""A module's state dict has other names or sizes than the task's."""
CHANGED_AN_INPUT = 13
"""An input has other sizes, strides, memory or flags than before the calls."""
CHANGED_A_SETTING = 14
"""The process's settings aren't what they were before the import, or before the calls."""
CHANGED_A_GENERATOR = 15
"""A generator of random numbers that the whole process shares was drawn from, or seeded."""
CHANGED_AN_OUTPUT = 16
"""An output of an earlier release, which was retained, has been written to."""
IN_A_DESTINATION = 17
"""An output lies where the harness copies outputs to: the copy would cost nothing."""

ARTIFACT_COUNT = struct.Struct("!I")
ARTIFACT_ENTRY = struct.Struct("!64sQ")
"""A built file in the arena: its name, padded with zero bytes, and its size; the bytes follow."""

MOST_IN_A_PLAN = 64
"""Steps, workspaces, inputs and outputs, each; forge/domain/plan.py takes no more."""

ELEMENT_TYPES = (
    *("other", "float32", "float16", "bfloat16", "float64", "int32", "int64", "bool"),
    *("float8_e4m3fn", "int8", "uint8"),
)
"""torch's names; a record gives the position in this list."""


@dataclass(frozen=True)
class OutputForm:
    """The form of one returned tensor, as the guest describes it."""

    element_type: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """One reply, unpacked and otherwise unchecked."""

    call_id: int
    status: int
    completed: int
    outputs: tuple[OutputForm, ...]
    device_ns: int = 0
    """Of a timed window."""


def next_in_chain(total: int, waiting: list[int]) -> int:
    """Take the next set from those that wait: which one follows from the sum of the last call's output words.

    Both sides of the wall compute it. The sum is modulo 2^64, so that the order of adding is of no account.
    """
    mixed = (total * CHAIN_MULTIPLIER) % 2**64 >> 32
    return waiting.pop(mixed % len(waiting))


def pack_command(kind: bytes, body: bytes) -> bytes:
    """Frame a command."""
    return COMMAND_HEADER.pack(kind, len(body)) + body


def pack_record(record: Record) -> bytes:
    """Render a reply as its fixed number of bytes."""
    parts = [
        RECORD_HEADER.pack(
            *(RECORD_MAGIC, record.call_id, record.status, len(record.outputs), 0, record.completed, record.device_ns)
        )
    ]
    for output in record.outputs:
        dimensions = len(output.sizes)
        padding = (0,) * (MAX_DIMENSIONS - dimensions)
        code = ELEMENT_TYPES.index(output.element_type) if output.element_type in ELEMENT_TYPES else 0
        parts.append(RECORD_OUTPUT.pack(code, dimensions, 0, *output.sizes, *padding, *output.strides, *padding))
    return b"".join(parts).ljust(RECORD_BYTES, b"\0")


def unpack_record(untrusted: bytes) -> Record:
    """Unpack exactly `RECORD_BYTES`; raise ValueError for anything that `pack_record` wouldn't have written."""
    if len(untrusted) != RECORD_BYTES:
        raise ValueError(f"a reply has {len(untrusted)} bytes, expected {RECORD_BYTES}")
    magic, call_id, status, described, zero, completed, device_ns = RECORD_HEADER.unpack_from(untrusted)
    if magic != RECORD_MAGIC or zero != 0 or described > MAX_OUTPUTS or status > IN_A_DESTINATION:
        raise ValueError("a reply's header is malformed")
    outputs = tuple(_unpack_output(untrusted, RECORD_HEADER.size + i * RECORD_OUTPUT.size) for i in range(described))
    record = Record(call_id=call_id, status=status, completed=completed, outputs=outputs, device_ns=device_ns)
    if pack_record(record) != untrusted:
        raise ValueError("a reply has bytes where there should be none")
    return record


def _unpack_output(untrusted: bytes, offset: int) -> OutputForm:
    code, dimensions, _, *numbers = RECORD_OUTPUT.unpack_from(untrusted, offset)
    if code >= len(ELEMENT_TYPES) or dimensions > MAX_DIMENSIONS:
        raise ValueError("a reply describes an impossible tensor")
    sizes, strides = numbers[:dimensions], numbers[MAX_DIMENSIONS : MAX_DIMENSIONS + dimensions]
    return OutputForm(ELEMENT_TYPES[code], tuple(sizes), tuple(strides))
