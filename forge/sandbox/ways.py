"""Hands the judge the names of ways in which a guest makes calls; the wire's other words are the sandbox's alone."""

from forge.guest.wire import NO_WAYS, SERVED, Ways

__all__ = ["NO_WAYS", "SERVED", "Ways"]
