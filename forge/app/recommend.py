"""Answers with deployment plans: reads the profiles, finds the registry, and returns plain data."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from forge.app.user.home import REGISTRY_FOLDER, find_home
from forge.domain.published_files import MODELS_FILE
from forge.errors import BlobCorrupt, UsageError, WorkspaceNotFound
from forge.lookup.published import read_published
from forge.recommend import (
    Comparison,
    Recommendation,
    Recommender,
    ServingProfile,
    compare,
    export_config,
    parse_prices,
    parse_request,
    parse_serving_profiles,
)

Data = dict[str, object]
PROFILES_BYTES = 2**26
"""Largest file of profiles, in bytes. It is about 670 bytes for each of the `PROFILES_LIMIT` profiles."""


def recommend(
    home: Path | None,
    *,
    models: Sequence[str],
    asked: Mapping[str, object],
    prices: Sequence[str] = (),
    profiles: Sequence[Path] = (),
) -> Data:
    """Return plans for one model, or a comparison of several; the ledger isn't opened.

    `asked` are the request's other fields, from outside. Without a workspace there are plans without kernels.

    Raises UsageError without a model.
    """
    if not models:
        raise UsageError("no model: expected at least one --model")
    request = parse_request({**asked, "model": models[0], "prices": parse_prices(list(prices))})
    measured = [profile for path in profiles for profile in _read(path)]
    registry = _registry(home)
    recommender = Recommender(profiles=measured, registry_path=registry)
    if len(models) == 1:
        found = _answer(recommender.recommend(request))
        return found | {"end_to_end": _end_to_end(registry, [found])}
    compared = _comparison(compare(recommender, request, models))
    answers: list[Data] = compared["models"]  # type: ignore[assignment]  # made by _comparison
    return compared | {"end_to_end": _end_to_end(registry, answers)}


def _end_to_end(registry: Path | None, answers: Sequence[Data]) -> list[Data]:
    """Return the measurements of whole models on the plans' GPUs. They change no figure of a plan.

    A registry without such measurements has no file of them. Raise BlobCorrupt for a file that can't be read.
    """
    path = None if registry is None else registry / MODELS_FILE
    if path is None or not path.is_file():
        return []
    gpus = {plan["gpu"] for one in answers for plan in one["plans"]}  # type: ignore[attr-defined]  # made by _answer
    try:
        measured: list[Data] = orjson.loads(read_published(str(registry), MODELS_FILE))["measurements"]
        return [one for one in measured if one["gpu"] in gpus]
    except (ValueError, KeyError, TypeError) as error:
        raise BlobCorrupt(f"{str(path)!r} can't be read: {error}; publish the registry again") from error


def _registry(home: Path | None) -> Path | None:
    """Return the folder of the published registry; None if no workspace was named and none is here."""
    try:
        return find_home(home) / REGISTRY_FOLDER
    except WorkspaceNotFound:
        return None


def _read(path: Path) -> tuple[ServingProfile, ...]:
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"profiles {str(path)!r} are no plain file: expected a JSON file")
        with path.open("rb") as file:
            content = file.read(PROFILES_BYTES + 1)
    except OSError as error:
        raise UsageError(f"profiles {str(path)!r} can't be read: {error.strerror}; expected a JSON file") from error
    if len(content) > PROFILES_BYTES:
        raise UsageError(f"profiles {str(path)!r} are too long: expected at most {PROFILES_BYTES} bytes")
    return parse_serving_profiles(content, source=str(path))


def _answer(found: Recommendation) -> Data:
    best = found.recommended
    return {
        **found.model_dump(mode="json", exclude={"recommended", "alternatives"}),
        "recommended": None if best is None else best.rank,
        "plans": [plan.model_dump(mode="json") for plan in found.plans],
        "config": None if best is None else export_config(best, workload=found.workload).model_dump(mode="json"),
    }


def _comparison(found: Comparison) -> Data:
    return {
        **found.model_dump(mode="json", exclude={"recommendations"}),
        "models": [_answer(one) for one in found.recommendations],
    }
