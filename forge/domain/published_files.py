"""Names of published files that are read without the code that writes them."""

MODELS_FILE = "models.json"
"""Name of the published measurements of whole models; there is none before the first."""
