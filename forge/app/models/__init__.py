"""Whole models, measured with and without adopted kernels."""
