"""One file for each inference engine. No other module imports them: an engine asks for its own.

A file imports its engine inside functions only, so that reading it needs no engine.
"""
