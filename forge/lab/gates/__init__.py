"""Lists the gates in the order in which a loaded candidate meets them; the first refusal ends the examination.

To add a gate: write its file, add its line to `GATES`, and add a candidate to `tests/evil/` that only this gate
refuses.
"""

from forge.lab.definitions.definition import Definition
from forge.lab.gates.aliasing import ALIASING
from forge.lab.gates.bounds import BOUNDS
from forge.lab.gates.combinations import COMBINATIONS
from forge.lab.gates.configurations import CONFIGURATIONS
from forge.lab.gates.determinism import DETERMINISM
from forge.lab.gates.domain import DOMAIN
from forge.lab.gates.endurance import ENDURANCE
from forge.lab.gates.exact import EXACT
from forge.lab.gates.gate import Gate
from forge.lab.gates.layouts import LAYOUTS
from forge.lab.gates.leaks import LEAKS
from forge.lab.gates.metamorphic import METAMORPHIC
from forge.lab.gates.mutation import MUTATION
from forge.lab.gates.numerics import NUMERICS
from forge.lab.gates.replay import REPLAY
from forge.lab.gates.scales import SCALES
from forge.lab.gates.sequences import SEQUENCES
from forge.lab.gates.signature import SIGNATURE
from forge.lab.gates.sizes import SIZES
from forge.lab.gates.specials import SPECIALS
from forge.lab.gates.state import STATE

GATES: tuple[Gate, ...] = (
    *(SIGNATURE, REPLAY, NUMERICS, CONFIGURATIONS, DETERMINISM, EXACT, SCALES, SPECIALS, ALIASING),
    *(SIZES, SEQUENCES, DOMAIN, LAYOUTS, COMBINATIONS, METAMORPHIC, BOUNDS, MUTATION, LEAKS, ENDURANCE, STATE),
)
"""Gates in order: those that refuse most candidates for each second come first.

What a gate says must be true of a kernel that passed those before. `scales` comes before `specials`: a finite
number says more than a NaN. `domain` and `layouts` come after gates that ask plain operands inside. `aliasing`
comes before `sizes`, so that its outputs stay in memory while sizes change, if one guest is asked both.
`combinations` comes after `sizes` and `layouts`: they name one cause. `leaks` comes before `endurance`, whose calls
could use up all memory first. `state` comes last: a workspace that a kernel keeps from a call in inference mode
can't be written to outside that mode.
"""


def gates_for(definition: Definition) -> tuple[Gate, ...]:
    """Return the gates that ask a candidate for an operation defined so, in order."""
    return tuple(gate for gate in GATES if gate.needs <= definition.declares)
