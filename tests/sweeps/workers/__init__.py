"""Programs that sweeps start: they run where transformers or argosy is not, or may be ended by an engine."""
