"""Takes a module apart: its graph of operators, groups of them, their programs, and the proof that they add up."""
