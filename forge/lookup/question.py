"""One slot at one shape, and how well a kernel fits it. These are the rules of a lookup; no file is read."""

from forge.errors import UsageError
from forge.lookup.policy import BETWEEN, COVERED, EXACT, FITS, NEAREST, Policy
from forge.lookup.sizes import LARGEST_SIZE, is_size, octaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge.lookup.offer import Offer, Point
    from forge.lookup.sizes import Sizes

    Axes = tuple[str, ...]
    Fit = tuple[bool, int, float, float, str]


class Question:
    """One slot at one shape, and what the caller accepts."""

    __slots__ = ("axes", "dtype", "gpu", "gpus", "language", "logs", "op", "policy", "sizes")

    def __init__(
        self,
        op: str,
        gpu: str,
        dtype: str,
        shape: "Mapping[str, int]",
        *,
        language: str | None,
        policy: Policy,
        gpus: "Mapping[str, str]",
    ) -> None:
        if not (type(op) is type(gpu) is type(dtype) is str and (language is None or type(language) is str)):
            raise UsageError(
                f"bad slot {(op, gpu, dtype, language)!r}: expected names of an operation, GPU and dtype"
            )
        if type(policy) is not Policy:
            raise UsageError(f"bad policy {policy!r}: expected a forge.lookup.Policy")
        self.op, self.dtype, self.language, self.policy, self.gpus = op, dtype, language, policy, gpus
        self.gpu = gpu if gpu in gpus else slug(gpu)
        self.axes: Axes
        """Sizes in the order of the axes' names."""
        self.sizes: Sizes
        self.axes, self.sizes = _parse_shape(shape)
        self.logs = octaves(self.sizes)

    def judge(self, offer: "Offer") -> "tuple[Fit, Point] | str":
        """Return how well a kernel fits and the measured point that counts, or why it may not answer."""
        barred = self.barred(offer)
        if barred is not None:
            return barred
        rank = self._rank(offer)
        if isinstance(rank, str):
            return rank
        points = self.points(offer).get(self.axes, ())
        if not points:
            return f"never measured at a shape with axes {list(self.axes)}"
        point = min(points, key=self._nearness)
        distance, median_ns = self.distance(point), point.median_ns
        limit = self.policy.max_octaves
        if limit is not None and not distance <= limit:
            return f"nearest measured shape {dict(point.evidence.shape)} is {distance} octaves away, allowed {limit}"
        rank += 0 if offer.kernel.gpu == self.gpu else len(FITS)
        return (offer.kernel.status != "active", rank, distance, median_ns, offer.kernel.kernel_id), point

    def barred(self, offer: "Offer") -> str | None:
        """Return why a kernel may not answer, whatever the shape."""
        kernel, policy = offer.kernel, self.policy
        if other_gpu := self._gpu_barred(kernel.gpu):
            return other_gpu
        if kernel.dtype != self.dtype:
            return f"dtype {kernel.dtype}, asked {self.dtype}"
        if kernel.status != "active" and not (kernel.status == "deprecated" and policy.deprecated):
            return f"{kernel.status}: {offer.status_reason}"
        if self.language not in {None, kernel.language}:
            return f"language {kernel.language}, asked {self.language}"
        if policy.abi_key not in {None, kernel.abi_key}:
            return f"built for abi_key {kernel.abi_key}"
        if policy.measured_since is not None and not policy.measured_since <= offer.measured_at:
            return f"measured at {offer.measured_at}, asked since {policy.measured_since}"
        if policy.evidence == "replicated" and offer.state != "replicated":
            return "provisional: no second measurement that counts has held, asked for replicated evidence"
        if self.points(offer):
            return None
        return "never measured" if policy.regime == "cold" else f"never measured with {policy.regime} operands"

    def _gpu_barred(self, gpu: str) -> str | None:
        if gpu == self.gpu:
            return None
        if self.policy.gpu != "family":
            return f"gpu {gpu}, asked {self.gpu}"
        arch, asked = self.gpus.get(gpu), self.policy.gpu_arch or self.gpus.get(self.gpu)
        if arch is not None and arch == asked:
            return None
        return f"gpu {gpu} of architecture {arch}, asked {self.gpu} of {asked}"

    def _rank(self, offer: "Offer") -> int | str:
        """Return the place in FITS of how the asked shape lies in the verified domain, or why it lies outside."""
        domain = offer.domains.get(self.axes)
        if domain is None:
            return f"shape has axes {list(self.axes)}, none verified"
        if self.sizes in domain.verified:
            measured = self.points(offer).get(self.axes, ())
            rank = EXACT if any(point.sizes == self.sizes for point in measured) else COVERED
        else:
            beyond = domain.beyond(self.sizes)
            if beyond is not None:
                return beyond
            rank = BETWEEN if self.bracket(offer) is not None else NEAREST
        if rank > self.policy.loosest:
            return f"shape is only {FITS[rank]}, the policy asks for {self.policy.shape}"
        return rank

    def points(self, offer: "Offer") -> "dict[Axes, list[Point]]":
        """Return the measured points of a kernel that count for this question, by the axes of the shapes."""
        return offer.points(self.policy.regime, self.policy.evidence)

    def bracket(self, offer: "Offer") -> "tuple[Point, Point] | None":
        """Return the nearest proven points with no size above, and with no size below, the asked shape's.

        None if one side has none, or if the kernel was measured between the two and isn't promoted there. A point at
        a shape that wasn't verified proves nothing.
        """
        verified = offer.domains[self.axes].verified
        points = [point for point in self.points(offer).get(self.axes, ()) if point.sizes in verified]
        points.sort(key=self._nearness)
        below = next((point for point in points if _within(point.sizes, self.sizes)), None)
        above = next((point for point in points if _within(self.sizes, point.sizes)), None)
        if below is None or above is None:
            return None
        unproven = offer.domains[self.axes].unproven
        if any(_within(below.sizes, sizes) and _within(sizes, above.sizes) for sizes in unproven):
            return None
        return below, above

    def _nearness(self, point: "Point") -> tuple[float, bool, float]:
        """Order by distance, then the asked size before another at distance 0 (0 and 1 are such), then by time."""
        return self.distance(point), point.sizes != self.sizes, point.median_ns

    def distance(self, point: "Point") -> float:
        """Return the octaves summed over the axes: |log2(asked / measured)|; size 0 counts as 1."""
        total = 0.0
        for asked, measured in zip(self.logs, point.logs, strict=True):
            total += abs(asked - measured)
        return round(total, 6)


def _within(sizes: "Sizes", limits: "Sizes") -> bool:
    """Return whether no size is larger than the limit of its axis."""
    return all(map(int.__le__, sizes, limits))


def slug(gpu: str) -> str:
    """Return a GPU's name as identifiers have it: lower-case letters and digits, without the maker."""
    plain = gpu.removeprefix("NVIDIA").removeprefix(" GeForce").lower()
    return "".join(letter for letter in plain if letter.isascii() and letter.isalnum())


def _parse_shape(untrusted: "Mapping[str, int]") -> "tuple[Axes, Sizes]":
    """Return a shape's axes in order of name, and their sizes; raise UsageError."""
    try:
        axes = tuple(sorted(untrusted))
        sizes = tuple([untrusted[axis] for axis in axes])
    except (TypeError, KeyError, IndexError) as error:
        raise _bad_shape(untrusted) from error
    for axis, size in zip(axes, sizes, strict=True):
        if type(axis) is not str or not is_size(size):
            raise _bad_shape(untrusted)
    if not axes:
        raise _bad_shape(untrusted)
    return axes, sizes


def _bad_shape(untrusted: object) -> UsageError:
    try:
        said = repr(untrusted)[:200]
    except ValueError:
        said = "with a number too long to print"
    return UsageError(f"bad shape {said}: expected axis names with whole sizes from 0 to {LARGEST_SIZE}")
