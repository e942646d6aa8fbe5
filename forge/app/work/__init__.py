"""Work on request: who wants which run judged, and the workers and places that do it."""
