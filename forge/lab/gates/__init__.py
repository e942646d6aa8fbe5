"""The questions put to a loaded candidate, in order; the first refusal ends the examination.

To add a gate: its file, its line in `GATES`, and its twin in `tests/evil/`.
"""

from forge.lab.finding import Gate
from forge.lab.gates.aliasing import ALIASING
from forge.lab.gates.bounds import BOUNDS
from forge.lab.gates.determinism import DETERMINISM
from forge.lab.gates.numerics import NUMERICS
from forge.lab.gates.replay import REPLAY
from forge.lab.gates.scales import SCALES
from forge.lab.gates.signature import SIGNATURE
from forge.lab.gates.sizes import SIZES

GATES: tuple[Gate, ...] = (SIGNATURE, REPLAY, NUMERICS, ALIASING, SIZES, SCALES, DETERMINISM, BOUNDS)
