"""Chooses the configuration of a guest's autotuned kernels, from the host's side."""

from typing import Literal

from forge.lab.calls.configurations import Configurations, parse_configurations
from forge.lab.calls.placement import PLAIN
from forge.lab.calls.refusal import no_answer, tampered
from forge.lab.finding import Failed
from forge.lab.inputs.seeded import Seeded
from forge.sandbox.reply import Refused
from forge.sandbox.session import Session

Way = Literal["choose", "rehearse", "measure"]
"""Way in which an autotuned kernel gets its configuration; forge/languages/triton/guest.py explains them."""
EACH_CPU_S = 5.0
"""Processor seconds that a candidate has more, for each of its configurations. Chosen; each is compiled, which takes
one to five seconds."""


class Tuner:
    """The host's choice for one guest, of which it is told before its next call."""

    def __init__(self, session: Session, *, tunes: bool) -> None:
        self._session = session
        self.tunes = tunes
        """Whether the candidate may have autotuned kernels."""
        self.allowed = 0
        """Number of configurations for which the candidate was given time."""
        self.choose(0)

    def choose(self, number: int, *, way: Way = "choose") -> None:
        """Have autotuned kernels use the configuration of this number, counted around, from the next call on."""
        self._number, self._way, self._told = number, way, False

    def choose_at_random(self, rng: Seeded) -> None:
        """Have autotuned kernels use any of their configurations from the next call on."""
        if self.tunes:
            self.choose(rng.getrandbits(16))

    def settle(self) -> Refused | None:
        """Tell the guest which configuration is due, once."""
        if not self.tunes or self._told:
            return None
        answer = self._session.choose(self._number, self._way, described=False)
        self._told = not isinstance(answer, Refused)
        return answer if isinstance(answer, Refused) else None

    def configurations(self) -> Configurations | Failed:
        """Return what the guest says of its autotuned kernels, in the arena: the pages there must be open."""
        answer = self._session.choose(self._number, self._way, described=True)
        try:
            return no_answer(answer, PLAIN) if isinstance(answer, Refused) else parse_configurations(answer)
        except ValueError as error:
            return tampered(f"the guest's configurations make no sense: {str(error)[:300]}")

    def allow_for(self, configurations: int) -> None:
        """Raise the limit of processor seconds to what `configurations` configurations take."""
        self.allowed = max(self.allowed, configurations)
        self._session.allow(EACH_CPU_S * configurations)
