"""The differential sweep: configurations drawn by seed, exported and compared with eager."""
