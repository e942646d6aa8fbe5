"""Versions of `history.db`. They stand apart, so that a reader needs none of the code that makes the file."""

PROJECTOR_VERSION = 9
"""Version of what the folds compute. If a file has another version, it is rebuilt."""
SCHEMA_VERSION = 12
"""Version of the tables and views. It rises if one changes; the file is then built anew."""
