"""Sweeps: many exports, one after the other and side by side, each in processes of its own.

``python -m argosy.sweep`` is what ``argosy sweep`` starts. Nothing here imports torch.
"""
