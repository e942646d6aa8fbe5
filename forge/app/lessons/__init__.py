"""Lessons: proposed from closed experiments, accepted by a person, listed."""
