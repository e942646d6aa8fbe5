"""Which kernel to use, and why not the others: the read side for other programs, standard library only.

Two questions are kept apart. *May it run here*: only inside the domain it was verified in. *How fast is it*:
what was measured, at the nearest measured shape, with the distance. The answer's `match` says how they met:

- `exact`: the asked shape was verified and measured
- `covered`: it was verified, and measured at another shape
- `between`: it wasn't verified itself, but the kernel is promoted for a shape with no larger size and for one with
  no smaller size. The default policy allows it.
- `nearest`: it wasn't verified itself, but each of its sizes lies between verified ones. No product of sizes exceeds
  a verified one, and it lies in the domain that the kernel declares. The policy must allow it.
- `family`: one of the above on another GPU of the same architecture. The policy must allow it.
- `none`: nothing may run here; `rejected` says why

Along an axis with one or two verified sizes, `between` and `nearest` answer at these sizes alone.

In this order the better match wins. Among equal ones the smaller distance to a measured shape decides, then the lower
median time there, then the kernel id. Deprecated kernels answer only if allowed and if nothing else does; revoked
ones and those without valid evidence never. Nothing is imported before a registry is opened, and no promoted code
before a caller asks `Registry.load` for it.
"""

from forge.lookup.answer import Evidence, Kernel
from forge.lookup.machine import abi_key
from forge.lookup.policy import FITS, STRICT, Policy
from forge.lookup.registry import Health, Registry
from forge.lookup.result import Result

__all__ = ["FITS", "STRICT", "Evidence", "Health", "Kernel", "Policy", "Registry", "Result", "abi_key"]
