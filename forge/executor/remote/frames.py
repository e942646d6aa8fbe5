"""Messages on a stream of bytes: one byte for the kind, eight for the length, then the message.

Every length is checked before anything is read, so that another machine can't fill this one's memory.
"""

from collections.abc import Callable
from typing import BinaryIO, Literal, NamedTuple, get_args

from forge.errors import RemoteFailed

Kind = Literal["hello", "call", "progress", "alive", "answer", "refusal"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LENGTH_BYTES = 8
"""Number of bytes that hold a message's length. It is one 64-bit number."""
LONGEST: dict[Kind, int] = {
    "hello": 10_000,
    "call": 512 * 2**20,
    "progress": 10_000,
    "alive": 0,
    "answer": 512 * 2**20,
    "refusal": 100_000,
}
"""Largest length of a message by its kind, in bytes. A job has a candidate's sources and its built files."""


class Frame(NamedTuple):
    """One message."""

    kind: Kind
    payload: bytes


def packed(frame: Frame) -> bytes:
    """Return a message as it is sent; raise RemoteFailed if it is longer than its kind may be."""
    if len(frame.payload) > LONGEST[frame.kind]:
        raise RemoteFailed(
            f"a message of kind {frame.kind} has {len(frame.payload)} bytes: expected at most {LONGEST[frame.kind]}"
        )
    return bytes([KINDS.index(frame.kind)]) + len(frame.payload).to_bytes(LENGTH_BYTES) + frame.payload


def read_frame(read: Callable[[int], bytes]) -> Frame | None:
    """Return the next message; None at the stream's end; raise RemoteFailed for anything that is no message.

    `read` returns exactly as many bytes as it is asked for, or fewer at the end of the stream.
    """
    header = read(1 + LENGTH_BYTES)
    if not header:
        return None
    if len(header) < 1 + LENGTH_BYTES or header[0] >= len(KINDS):
        raise RemoteFailed(
            f"the other side sent {header[:60]!r}: expected a message of Forge; its shell may print at login"
        )
    kind, length = KINDS[header[0]], int.from_bytes(header[1:])
    if length > LONGEST[kind]:
        raise RemoteFailed(f"a message of kind {kind} has {length} bytes: expected at most {LONGEST[kind]}")
    payload = read(length)
    if len(payload) < length:
        raise RemoteFailed(
            f"the connection broke in the middle of a message: expected {length} bytes, {len(payload)} came; "
            "run the command again"
        )
    return Frame(kind, payload)


def last_frame(read_next: Callable[[], Frame], name: str, progress: Callable[[str], None]) -> Frame:
    """Return the answer or the refusal that ends a call, and report the progress before it.

    `name` is the other machine's, for messages.

    Raises RemoteFailed for a message that is no part of an answer.
    """
    while True:
        frame = read_next()
        match frame.kind:
            case "answer" | "refusal":
                return frame
            case "progress":
                progress(frame.payload.decode(errors="replace"))
            case "alive":
                pass
            case _:
                raise RemoteFailed(
                    f"{name} sent {frame.kind}: expected an answer or a refusal; run the command again"
                )


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write a message to a stream at once."""
    stream.write(packed(frame))
    stream.flush()
