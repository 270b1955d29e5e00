"""Is an exported program right? Compares it with the eager model, in the engine that users run it in."""
