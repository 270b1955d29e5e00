"""Prints the rules of `argosy lint` as the rows of docs/lint.md."""

from test_lint import rules

for rule in rules():
    print(f"| {rule['engine'] or 'all'} | `{rule['rule']}` | {rule['severity']} | {rule['what']} |")
