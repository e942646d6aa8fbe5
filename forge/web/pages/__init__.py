"""Pages for people: each has the same content under `.json`, and only what is live needs a script."""
