"""Tries to read the memory of a stopped guest, as the timing on a processor does, and says what to change.

Distrusts settings: the read is made, on a guest of Forge's own that holds bytes which the host chose.
"""

import os
import secrets
import sys

from forge.errors import EnvironmentUnfit
from forge.sandbox.guest_memory import unreadable
from forge.sandbox.isolation import Level
from forge.sandbox.isolation_report import Lack
from forge.sandbox.launch import Confinement, Guest, Limits, masked_paths, runtime_binds, start

WHAT = "guest memory"
"""Name of the part that a report says is lacking."""
_WALL_S = 20.0
"""Seconds that the guest may take. Chosen; it takes milliseconds."""
_MARK_BYTES = 32
"""Number of bytes that are read: too many to be met by chance."""
_ADDRESS_BYTES = 8
"""Length of an address in bytes."""
_HOLD = """
import ctypes, os, sys
held = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))
os.write(3, ctypes.addressof(held).to_bytes(8, "little"))
os.read(4, 1)
"""
"""Program of the guest: it says where the bytes lie, and waits."""


def try_guest_memory(level: Level) -> Lack | None:
    """Return why the host may not read the memory of its guests at a level, and the next step; None if it may.

    At `none` guests aren't stopped and copy their outputs, so nothing is tried. Raise EnvironmentUnfit if the guest
    doesn't start.
    """
    if level == "none":
        return None
    mark = secrets.token_bytes(_MARK_BYTES)
    address, guests_end = os.pipe()
    waits, ours = os.pipe()
    try:
        confined = Confinement(
            argv=(sys.executable, "-I", "-S", "-c", _HOLD, mark.hex()),
            binds=runtime_binds(),
            masked=masked_paths(),
            environment={},
            descriptors=(guests_end, waits),
            limits=Limits(wall_s=_WALL_S),
        )
        with start(confined, isolation=level) as guest:
            os.close(guests_end)
            guests_end = -1
            said = os.read(address, _ADDRESS_BYTES)
            if len(said) < _ADDRESS_BYTES or not guest.freeze():
                raise EnvironmentUnfit(
                    f"Forge's own guest didn't stop, its log is {guest.log()!r}: expected a guest that can be stopped"
                )
            return _read(guest, mark, int.from_bytes(said, "little"))
    finally:
        for descriptor in (address, guests_end, waits, ours):
            if descriptor >= 0:
                os.close(descriptor)


def _read(guest: Guest, mark: bytes, address: int) -> Lack | None:
    memory = guest.open_memory()
    assert memory is not None  # there is a namespace, so the guest can be stopped
    found = bytearray(len(mark))
    try:
        memory.require_readable()
        if memory.read_into(memoryview(found), address) and found == mark:
            return None
        raise unreadable("the bytes that a guest holds weren't read")
    except EnvironmentUnfit as denied:
        return Lack(WHAT, denied.message, denied.hint or "")
