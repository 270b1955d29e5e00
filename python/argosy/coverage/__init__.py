"""Coverage: which families of models work, measured by a command and written to ``docs/coverage``."""
