"""Promoted kernels in a running program: the judged bytes where they fit, the program's own operation elsewhere.

    from forge.adopt import adopt

    ops = adopt("kernel_registry", ops=["rmsnorm"], trust="promoted")
    y = torch.ops.forge.rmsnorm(x, weight, 1e-6)
    print(ops.report().table())

A call takes the first of these that fits:

1. the launch plan that was timed, if the call has exactly its shape, strides, alignment and scalars
2. the promoted source, inside the domain that it was verified in
3. the fallback

Each fallback is counted with its reason. Importing this package imports neither torch nor a promoted kernel.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forge.adopt.adopting import Adopted, adopt
    from forge.adopt.refusal import REASONS, Reason
    from forge.adopt.tally import Report

__all__ = ["REASONS", "Adopted", "Reason", "Report", "adopt"]
_HOMES = {
    "adopt": "forge.adopt.adopting",
    "Adopted": "forge.adopt.adopting",
    "REASONS": "forge.adopt.refusal",
    "Reason": "forge.adopt.refusal",
    "Report": "forge.adopt.tally",
}
"""Public name -> its module, which is imported when the name is first asked for."""


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found
