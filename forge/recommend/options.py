"""Every possible deployment (GPU, count, quantization, backend) with its figures, or the reason why there is none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from forge.platforms import PROCESSORS, Processor, find_processor
from forge.recommend.memory import MemoryShares, memory_of
from forge.recommend.models import ModelShape
from forge.recommend.plan import LeftOut
from forge.recommend.quantization import BACKENDS, STORAGE, USUAL, Backend, Quantization, backends_for
from forge.recommend.request import Request, Traffic
from forge.recommend.roofline import Hardware, Phase, decode, hardware_of, prefill, throughput_tok_s
from forge.recommend.serving_profile import ServingProfile


@dataclass(frozen=True, kw_only=True)
class Option:
    """One deployment and what it comes to; `profile` is where its figures are from, unless they are estimates."""

    model: ModelShape
    processor: Processor
    gpus: int
    quantization: Quantization
    backends: tuple[Backend, ...]
    """The first is the plan's."""
    traffic: Traffic
    context_tokens: int
    running: int
    memory_gb: float
    ttft_ms: float
    tpot_ms: float | None
    throughput_tok_s: float
    price_per_hour: float | None
    first: Phase | None = None
    step: Phase | None = None
    profile: ServingProfile | None = None

    @property
    def latency_ms(self) -> float:
        """The time from a request's arrival at an idle place to its last token."""
        return self.ttft_ms + (self.tpot_ms or 0.0) * max(self.traffic.output_tokens - 1, 0)

    @property
    def requests_per_minute(self) -> float:
        """The requests that the plan finishes in a minute, in the steady state."""
        return 60 * self.throughput_tok_s / (self.traffic.output_tokens or self.traffic.prompt_tokens)

    @property
    def price_per_million_tokens(self) -> float | None:
        """The price of a million tokens, of those that throughput counts."""
        return None if self.price_per_hour is None else self.price_per_hour / (self.throughput_tok_s * 3600) * 1e6


@dataclass(frozen=True, kw_only=True)
class FoundOptions:
    """All options, the GPUs that have none, and what should be known of the search."""

    options: tuple[Option, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Search:
    """One request's question, with its names resolved."""

    request: Request
    model: ModelShape
    prices: Mapping[str, float]
    profiles: Sequence[ServingProfile]

    @cached_property
    def traffic(self) -> Traffic:
        """Prompt tokens, output tokens and requests at once that each plan must serve."""
        return self.request.traffic

    @cached_property
    def context_tokens(self) -> int:
        """What must fit: a whole request, or the context that was asked for."""
        traffic = self.traffic
        return max(traffic.prompt_tokens + traffic.output_tokens, self.request.constraints.min_context_tokens or 0)

    def run(self) -> FoundOptions:
        """Look at every GPU that is allowed."""
        options: list[Option] = []
        left_out: list[LeftOut] = []
        for processor in self._processors():
            found, reason = self._of(processor)
            options += found
            if not found:
                left_out.append(LeftOut(gpu=processor.slug, reason=reason))
        return FoundOptions(options=tuple(options), left_out=tuple(left_out), notes=self._notes())

    def _processors(self) -> list[Processor]:
        named = self.request.constraints.gpus
        if named is None:
            return [one for one in PROCESSORS.values() if one.memory_gb is not None]
        return list({one.slug: one for one in map(find_processor, named)}.values())

    def _of(self, processor: Processor) -> tuple[list[Option], str]:
        """Return the plans on a processor, and the last reason against one: with most GPUs and fewest bits."""
        limits = self.request.constraints
        if self.context_tokens > self.model.context_tokens:
            longest = self.model.context_tokens
            return [], f"{self.context_tokens} tokens of context are asked, {self.model.name} was made for {longest}"
        if processor.memory_gb is None:
            return [], "its memory isn't tabulated"
        if self.request.needs_prices and processor.slug not in self.prices:
            return [], "no price was given for it"
        tried = [
            option
            for quantization in limits.quantizations or USUAL
            for gpus in _counts(limits.max_gpus)
            for option in self._options(processor, quantization, gpus)
        ]
        reasons = [one for one in tried if isinstance(one, str)]
        return [one for one in tried if isinstance(one, Option)], (reasons or ["no backend runs it"])[-1]

    def _options(self, processor: Processor, quantization: Quantization, gpus: int) -> Iterator[Option | str]:
        """Yield a plan for each profile, then the estimated plan or the reason against it."""
        backends = self._backends(processor, quantization, gpus * processor.devices)
        measured = [one for one in self._measured(processor, quantization, gpus) if one.backend in backends]
        for profile in measured:
            yield self._from_profile(processor, profile)
        rest = tuple(name for name in backends if name not in {one.backend for one in measured})
        if rest:
            yield self._estimate(processor, quantization, gpus, rest)

    def _backends(self, processor: Processor, quantization: Quantization, devices: int) -> tuple[Backend, ...]:
        return backends_for(processor.platform, quantization, several_gpus=devices > 1, among=self._ordered)

    @cached_property
    def _ordered(self) -> tuple[Backend, ...]:
        """The allowed backends, the preferred one first."""
        among, preferred = self.request.constraints.backends or BACKENDS, self.request.prefer_backend
        return tuple(sorted(among, key=lambda name: (name != preferred, BACKENDS.index(name))))

    @cached_property
    def _fitting(self) -> list[ServingProfile]:
        """Profiles of this model under this traffic."""
        return [one for one in self.profiles if one.model == self.model.name and one.traffic == self.traffic]

    def _measured(self, processor: Processor, quantization: Quantization, gpus: int) -> list[ServingProfile]:
        asked = (processor.slug, quantization, gpus)
        return [one for one in self._fitting if (one.gpu, one.quantization, one.gpus) == asked]

    def _from_profile(self, processor: Processor, profile: ServingProfile) -> Option:
        memory = memory_of(
            self.model,
            STORAGE[profile.quantization],
            processor,
            devices=profile.gpus * processor.devices,
            context_tokens=self.context_tokens,
        )
        return Option(
            model=self.model,
            processor=processor,
            gpus=profile.gpus,
            quantization=profile.quantization,
            backends=(profile.backend,),
            traffic=self.traffic,
            context_tokens=self.context_tokens,
            running=profile.concurrency,
            memory_gb=profile.memory_gb or memory.filled_gb(profile.concurrency),
            ttft_ms=profile.ttft_ms_p95 or profile.ttft_ms_p50,
            tpot_ms=profile.tpot_ms_p95 or profile.tpot_ms_p50,
            throughput_tok_s=profile.throughput_tok_s,
            price_per_hour=self._price(processor, profile.gpus),
            profile=profile,
        )

    def _estimate(
        self, processor: Processor, quantization: Quantization, gpus: int, backends: tuple[Backend, ...]
    ) -> Option | str:
        storage, devices = STORAGE[quantization], gpus * processor.devices
        hardware = hardware_of(processor, storage, gpus=gpus)
        if isinstance(hardware, str):
            return hardware
        if self.model.heads % devices:
            return f"{self.model.heads} heads can't be split over {devices} devices"
        memory = memory_of(self.model, storage, processor, devices=devices, context_tokens=self.context_tokens)
        if memory.fits < 1:
            return _too_small(memory, quantization, gpus)
        return self._timed(hardware, memory, processor, quantization, backends)

    def _timed(
        self,
        hardware: Hardware,
        memory: MemoryShares,
        processor: Processor,
        quantization: Quantization,
        backends: tuple[Backend, ...],
    ) -> Option:
        storage, traffic, gpus = STORAGE[quantization], self.traffic, hardware.devices // processor.devices
        running = min(traffic.concurrency, memory.fits)
        first = prefill(self.model, storage, hardware, prompt_tokens=traffic.prompt_tokens)
        # on average over an answer, half of it is in the cache
        context = traffic.prompt_tokens + traffic.output_tokens / 2
        step = (
            decode(self.model, storage, hardware, context_tokens=context, batch=running)
            if traffic.output_tokens
            else None
        )
        together = (
            first
            if step
            else prefill(self.model, storage, hardware, prompt_tokens=traffic.prompt_tokens, prompts=running)
        )
        return Option(
            model=self.model,
            processor=processor,
            gpus=gpus,
            quantization=quantization,
            backends=backends,
            traffic=traffic,
            context_tokens=self.context_tokens,
            running=running,
            memory_gb=memory.filled_gb(running),
            ttft_ms=first.seconds * 1e3,
            tpot_ms=step.seconds * 1e3 if step else None,
            throughput_tok_s=throughput_tok_s(together, step, traffic=traffic, batch=running),
            price_per_hour=self._price(processor, gpus),
            first=first,
            step=step,
        )

    def _price(self, processor: Processor, gpus: int) -> float | None:
        price = self.prices.get(processor.slug)
        return None if price is None else price * gpus

    def _notes(self) -> tuple[str, ...]:
        traffic = self.traffic
        unused = sum(one.model == self.model.name and one.traffic != traffic for one in self.profiles)
        if not unused:
            return ()
        return (
            f"{unused} of the profiles of {self.model.name} were measured under other traffic and aren't used; "
            f"asked are {traffic.prompt_tokens} prompt tokens, {traffic.output_tokens} output tokens, "
            f"{traffic.concurrency} requests at once",
        )


def _counts(most: int) -> list[int]:
    """Return 1, 2, 4 ... up to `most`."""
    return [2**power for power in range(most.bit_length()) if 2**power <= most]


def _too_small(memory: MemoryShares, quantization: Quantization, gpus: int) -> str:
    needed = (memory.weights + memory.activations + memory.kv_per_request) / 1e9
    return (
        f"one request needs {needed:.1f} GB on each of {gpus} in {quantization}, "
        f"{memory.usable / 1e9:.1f} GB are usable"
    )
