"""Small vocabularies, and special tokens that fit in them."""

from __future__ import annotations

import re
from typing import Any

VOCABULARY = 128
#: Ids below this stay as they are: pad, bos, eos and unk of most tokenizers.
_KEPT = 8
#: Ids at and above this are special in a shrunk model; ordinary sample tokens lie between the two.
FIRST_SPECIAL = 88

_VOCABULARY_NAME = re.compile(r"(.*_)?vocab_size(_per_layer_input)?$")
_TOKEN_NAME = re.compile(r"(.*_)?(token_id|token_index|token_ids|tokens_ids|token_indices|_tokens)$|.*suppress_tokens$")
_NOT_TOKENS = re.compile(r"(max|min|num|suppress|t2u_max|begin_suppress).*_tokens$|.*soft_tokens.*")


def is_vocabulary(name: str) -> bool:
    """Whether an attribute of this name counts tokens."""
    return _VOCABULARY_NAME.match(name) is not None and name != "type_vocab_size"


def is_token(name: str) -> bool:
    """Whether an attribute of this name holds a token id, or several."""
    return _TOKEN_NAME.match(name) is not None and _NOT_TOKENS.match(name) is None


class TokenIds:
    """Maps special token ids of a large vocabulary into a small one: equal ids stay equal, different ones differ,
    across a configuration and all that are nested in it."""

    def __init__(self, trees: list[dict[str, Any]]) -> None:
        large = {id_ for tree in trees for id_ in _ids(tree) if id_ >= _KEPT}
        spare = [id_ for id_ in range(VOCABULARY - 1, FIRST_SPECIAL - 1, -1) if id_ not in large]
        kept = {id_ for id_ in large if FIRST_SPECIAL <= id_ < VOCABULARY}
        self._new = {id_: id_ for id_ in kept} | dict(
            zip(sorted(large - kept), reversed(spare[: len(large - kept)]), strict=False)
        )

    def of(self, id_: int, *, vocabulary: int | None) -> int:
        """The new id. An id equal to its own vocabulary's size (a codec's padding) stays equal to the new size."""
        if vocabulary is not None and id_ == vocabulary:
            return min(vocabulary, VOCABULARY)
        if vocabulary is not None and vocabulary <= VOCABULARY:
            return id_
        return self._new.get(id_, id_ if id_ < _KEPT else FIRST_SPECIAL)


def _ids(tree: dict[str, Any]) -> list[int]:
    found: list[int] = []
    for name, value in tree.items():
        if is_token(name):
            values = value if isinstance(value, (list, tuple)) else [value]
            found += [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
    return found


def shrink_tokens(config: dict[str, Any], ids: TokenIds) -> None:
    """Rewrites vocabulary sizes and token ids of one configuration (not of those nested in it)."""
    own = config.get("vocab_size")
    own = own if isinstance(own, int) else None
    for name, value in config.items():
        if isinstance(value, bool) or value is None:
            continue
        if is_vocabulary(name) and isinstance(value, int):
            config[name] = min(value, VOCABULARY)
        elif name.endswith("suppress_tokens"):
            config[name] = None  # of the generation settings; the tokens no longer exist
        elif is_token(name):
            if isinstance(value, int):
                config[name] = ids.of(value, vocabulary=own)
            elif isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
                config[name] = list(dict.fromkeys(ids.of(v, vocabulary=own) for v in value))
