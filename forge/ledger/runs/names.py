"""Names of the folders of runs."""

OPEN_PREFIX = ".tmp-"
"""Prefix of the folder of a run that isn't sealed."""
