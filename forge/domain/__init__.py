"""The nouns: pure, frozen values with no I/O and no tensor maths."""
