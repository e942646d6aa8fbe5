"""Tests of the folds; a package, so that file names may repeat elsewhere."""
