"""The builder, from the host's side: untrusted sources in, artifact bytes out, in a sandbox of its own."""

import json
import os
import select
from dataclasses import dataclass, replace

from forge.domain.verdict import Reason
from forge.guest import wire
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import ArtifactFile, Refused, parse_artifact, parse_reply
from forge.sandbox.session import exit_reason
from forge.sandbox.stage import BUILD, Stage

ARTIFACT_LIMIT_BYTES = 128 * 2**20


@dataclass(frozen=True)
class Built:
    """What the builder made."""

    files: tuple[ArtifactFile, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a language's builder is told."""

    source: str | None
    """The text to compile; None where importing kernel.py is all of the build."""
    flags: tuple[str, ...] = ()
    """For the compiler: the candidate's, then the host's."""
    code: str = ""
    """The GPU code to make ("sm_90a"), in a language that makes any."""


def build(stage: Stage, recipe: Recipe, *, limits: Limits, threads: int) -> Built | Refused:
    """Run the language's build on a stage; a compiler's complaint comes back in the refusal's log."""
    arena = Arena(ARTIFACT_LIMIT_BYTES)
    command_read, commands = os.pipe()
    replies, reply_write = os.pipe()
    try:
        body = {
            "candidate_directory": stage.candidate_directory,
            "scratch_directory": stage.scratch_directory,
            "arena_bytes": arena.size_bytes,
            "source": recipe.source,
            "flags": list(recipe.flags),
            "code": recipe.code,
        }
        guest = stage.start(
            BUILD,
            descriptors=(command_read, reply_write, arena.descriptor),
            limits=limits,
            threads=threads,
        )
        os.close(command_read)
        os.close(reply_write)
        command_read = reply_write = -1
        with guest:
            os.write(commands, wire.pack_command(wire.SETUP, json.dumps(body).encode()))
            readable = select.select([replies], [], [], limits.wall_s)[0]
            untrusted = os.read(replies, wire.RECORD_BYTES + 1) if readable else b""
            if not untrusted:
                ended = guest.wait(1.0)
                timeout = Reason(code="TIMEOUT", message=f"the build took longer than {limits.wall_s:g} s")
                return Refused(exit_reason(ended) if ended else timeout, guest.log())
            answer = parse_reply(untrusted, call_id=0, elapsed_ns=0, calls=None)
            if isinstance(answer, Refused):
                return replace(answer, log=guest.log())
        return _take(arena, untrusted)
    finally:
        for descriptor in (commands, replies, command_read, reply_write):
            if descriptor >= 0:
                os.close(descriptor)
        arena.close()


def _take(arena: Arena, untrusted: bytes) -> Built | Refused:
    length = wire.unpack_record(untrusted).completed
    try:
        if length > arena.size_bytes:
            raise ValueError("the builder says it handed over more than there is")
        return Built(parse_artifact(arena.untrusted_bytes(length)))
    except ValueError as error:
        return Refused(Reason(code="COMPILE_ERROR", message=str(error)))
