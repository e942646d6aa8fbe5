"""Shrinks a wrong answer: finds the smallest shape that is still wrong, and writes a program that shows it."""
