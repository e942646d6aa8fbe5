"""A wrong answer made small: the least shape that is still wrong, and a program that shows it."""
