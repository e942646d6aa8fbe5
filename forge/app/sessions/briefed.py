"""Makes what an author works from that writes kernels itself: the task's brief, and starting files that pass."""

import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from forge.app.sessions.language_models import (
    LanguageModel,
    parse_model,
    parse_url,
    proposed_price,
    read_key,
    require_library,
)
from forge.app.sessions.pictures import IMAGE, read_picture
from forge.app.sessions.platform_pack import read_profile
from forge.app.sessions.starting_points import sections
from forge.app.tasks.briefs import brief
from forge.app.tasks.create import open_run
from forge.app.tasks.known_tasks import find_task
from forge.app.workspace import Workspace
from forge.authors.kinds import BRIEF, AuthorSource
from forge.authors.model.author import ModelOptions
from forge.domain.budget import Price
from forge.domain.feedback import Metric
from forge.domain.misfit import misfit
from forge.errors import UsageError
from forge.lab.packages import require_lab
from forge.pipeline.starter import starter_files
from forge.platforms.packs import find_pack
from forge.projections.runs import RunState


def briefed_source(
    workspace: Workspace, task_name: str, *, kind: str, settings: Mapping[str, str], profile: str | None = None
) -> AuthorSource:
    """Return what an author of a task is made from. The task's brief is rendered if it wasn't."""
    require_lab()
    task, stored = find_task(workspace, task_name), dict(settings)
    if kind == "model" and profile is not None and profile.startswith(IMAGE):
        stored["options"] = _with(stored, image=read_picture(profile.removeprefix(IMAGE)))
        profile = None
    added = sections(workspace, task.task, profile)
    told = brief(workspace, _run_with_brief(workspace, task.task_id)) + added
    files = {name: content.decode() for name, content in starter_files(task.task).items()}
    if kind == "model" and profile is not None:
        readings = read_profile(find_pack(task.task.target.platform), profile)
        metrics = tuple(Metric(id=one.id, value=one.value, unit=one.unit) for one in readings)
        stored["options"] = _with(stored, profile=metrics)
    return AuthorSource(kind=kind, files={BRIEF: told, **files}, options={}, settings=stored)


def _with(settings: Mapping[str, str], **more: object) -> str:
    """Return a model's options with what a profile adds, as they are stored."""
    return ModelOptions.model_validate_json(settings["options"]).model_copy(update=more).model_dump_json()


def _run_with_brief(workspace: Workspace, task_id: str) -> RunState:
    """Return a run of the task that has a brief or can have one; open one if there is none."""
    of_task = [one for one in workspace.run_states().runs.values() if one.task_id == task_id]
    fitting = [one for one in of_task if one.prompt is not None or one.state == "planned"]
    if not fitting:
        return workspace.find_run(open_run(workspace, task_id, command="agent brief").run_id)
    return workspace.find_run(fitting[-1].run_id)


def model_settings(name: str, base_url: str | None, options: Mapping[str, str]) -> dict[str, str]:
    """Return the stored settings of a model author; raise UsageError for a bad name, address or option."""
    parse_model(name)
    known = set(ModelOptions.model_fields) - {"model", "profile", "image"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise UsageError(f"unknown option {unknown[0]!r} of a model: expected one of {', '.join(sorted(known))}")
    try:
        parsed = ModelOptions.model_validate({"model": name, **options})
    except ValidationError as error:
        raise UsageError(f"bad option of a model: {misfit(error, ModelOptions)}") from error
    settings = {"options": parsed.model_dump_json()}
    return settings if base_url is None else {**settings, "base_url": parse_url(base_url)}


def model_of(source: AuthorSource, key_file: Path | None) -> LanguageModel:
    """Return what sends the prompts of a session's author; raise EnvironmentUnfit or UsageError."""
    require_library()
    options, url = ModelOptions.model_validate_json(source.settings["options"]), source.settings.get("base_url")
    key = read_key(parse_model(options.model).provider, key_file, local=url is not None)
    return LanguageModel(options.model, key, url, pause=time.sleep)


def known_prices(source: AuthorSource, prices: tuple[Price, ...]) -> tuple[Price, ...]:
    """Return the user's prices, and the list price of the author's model if the user named none."""
    options = ModelOptions.model_validate_json(source.settings["options"])
    if any(one.model == options.model for one in prices):
        return prices
    proposed = proposed_price(options.model, base_url=source.settings.get("base_url"))
    return prices if proposed is None else (*prices, proposed)
