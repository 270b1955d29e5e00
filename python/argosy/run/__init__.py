"""Runs bundles in the engines that they are for. There is no engine here: each is a row of ``runners.RUNNERS``."""
