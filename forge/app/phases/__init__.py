"""Phases: each loads recorded evidence, calls the pipeline, and records what it said."""
