"""Which deployment to choose for a model: ranked plans, what each figure rests on, and kernels that could help.

    from forge.recommend import Constraints, Recommender, Request

    answer = Recommender(registry_path=".").recommend(Request(model="llama3.1-8b", workload="chat"))

Figures are estimates from published shapes and rates (`memory`, `roofline`), or a measured profile's where there is
one. Constraints come first, then the score. Kernels from the registry are annotated afterwards and change nothing.
Importing this loads no torch and no ledger.
"""

from forge.recommend.compare import Comparison, Highlight, compare
from forge.recommend.engine import Recommender
from forge.recommend.export import DeploymentConfig, export_config
from forge.recommend.kernels import KernelRegistryPass
from forge.recommend.models import MODELS, ModelShape, find_model
from forge.recommend.passes import Annotation, OptimizationPass
from forge.recommend.plan import KernelOptimizationMetadata, Plan, Recommendation, Scores
from forge.recommend.request import Constraints, Request, parse_prices, parse_request
from forge.recommend.serving_profile import ServingProfile, parse_serving_profiles

__all__ = [
    "MODELS",
    "Annotation",
    "Comparison",
    "Constraints",
    "DeploymentConfig",
    "Highlight",
    "KernelOptimizationMetadata",
    "KernelRegistryPass",
    "ModelShape",
    "OptimizationPass",
    "Plan",
    "Recommendation",
    "Recommender",
    "Request",
    "Scores",
    "ServingProfile",
    "compare",
    "export_config",
    "find_model",
    "parse_prices",
    "parse_request",
    "parse_serving_profiles",
]
