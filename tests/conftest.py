"""Makes the folder of this file importable for tests: warm.py is for all of them."""
