"""Publishes bundles on the Hub. ``python -m argosy.push`` is what ``argosy push`` starts."""
