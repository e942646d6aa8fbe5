"""Models a plan can be asked for, as data from their published configurations; one file per family of authors.

To add a model: its entry in the file of its authors. A test computes its parameters and holds them to the published.
"""

from forge.errors import UnknownName, near_names
from forge.recommend.models.llama import LLAMA
from forge.recommend.models.others import OTHERS
from forge.recommend.models.qwen import QWEN
from forge.recommend.models.shape import Experts, Latent, ModelShape

MODELS: dict[str, ModelShape] = {model.name: model for model in (*LLAMA, *QWEN, *OTHERS)}
_BY_NAME = {name.lower(): model for model in MODELS.values() for name in (model.name, model.repository)}


def find_model(untrusted_name: str) -> ModelShape:
    """Return the model with this name or repository in any case, or raise UnknownName with the nearest names."""
    name = untrusted_name.strip().lower()
    model = _BY_NAME.get(name)
    if model is None:
        near = dict.fromkeys(_BY_NAME[one].name for one in near_names(name, _BY_NAME))
        raise UnknownName("model", untrusted_name, list(MODELS), near=tuple(near))
    return model


__all__ = ["MODELS", "Experts", "Latent", "ModelShape", "find_model"]
