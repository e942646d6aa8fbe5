"""Decides what operands hold and how large they are: distributions of values, random sizes, the budget of a shape."""
