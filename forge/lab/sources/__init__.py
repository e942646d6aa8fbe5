"""Reads a candidate's text before anything runs: forbidden constructs, and whether two candidates are equal."""
