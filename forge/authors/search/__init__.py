"""Searches the settings of a template, without a language model: a pure function of seed and log."""
