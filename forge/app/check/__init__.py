"""Checks one kernel without a workspace."""
