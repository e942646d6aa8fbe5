"""Calls of a loaded candidate: how it is staged, started, laid out, called, watched, and refused."""
