"""A tokenizer for a twin: one token a character, and the special tokens where the configuration has them."""

from __future__ import annotations

import string
from typing import Any

from .request import nested
from .text_inputs import padding_token
from .tokens import is_token

#: Characters in the order in which they get an id, for vocabularies that hold only some of them.
_CHARACTERS = " " + string.ascii_lowercase + string.digits + string.ascii_uppercase + string.punctuation + "\n"

#: How tokens of these roles are written; others are named after their attribute.
_WRITTEN = {"pad_token_id": "<pad>", "bos_token_id": "<s>", "eos_token_id": "</s>", "unk_token_id": "<unk>"}

#: Tokens that stand for media, or before and after them.
_MEDIA = ("image", "audio", "video", "boi", "eoi", "boa", "eoa")

#: Messages as plain lines, each with its role; pictures and sounds become their placeholders.
CHAT_TEMPLATE = """\
{{- bos_token if bos_token is defined and bos_token -}}
{%- for message in messages -%}
{{- message['role'] + ': ' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{{- part['text'] if part['type'] == 'text' else '<' + part['type'] + '>' -}}
{%- endfor -%}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'assistant: ' -}}{%- endif -%}
"""


def special_names(config: Any) -> dict[int, tuple[str, str]]:
    """Special ids of ``config``, each with the attribute that gave it and how the token is written."""
    names: dict[int, tuple[str, str]] = {}
    used: set[str] = set()
    for part in nested(config):
        for attribute, value in sorted(vars(part).items()):
            if not is_token(attribute):
                continue
            for id_ in value if isinstance(value, (list, tuple)) else [value]:
                if not isinstance(id_, int) or id_ < 0 or id_ in names:
                    continue
                stem = attribute.replace("_token_id", "").replace("_token_index", "").replace("_token", "").strip("_")
                text = _WRITTEN.get(attribute, f"<{stem}>")
                text = text if text not in used else f"<{stem}_{id_}>"
                used.add(text)
                names[id_] = (attribute, text)
    return names


def make_tokenizer(config: Any, vocabulary: int, *, chats: bool) -> Any:
    """A tokenizer of ``vocabulary`` tokens for a model of this configuration, as ``AutoTokenizer`` would load it. One
    that ``chats`` has a template for messages and pads on the left. Text of the characters it knows comes back unchanged from encoding and decoding."""
    import tokenizers
    from transformers import PreTrainedTokenizerFast

    special = special_names(config)
    texts = {id_: text for id_, (_, text) in special.items()}
    free = (id_ for id_ in range(vocabulary) if id_ not in texts)
    if "<unk>" not in texts.values():
        texts[next(free)] = "<unk>"
    for character, id_ in zip(_CHARACTERS, free, strict=False):
        texts[id_] = character
    texts |= {id_: f"<extra_{id_}>" for id_ in range(vocabulary) if id_ not in texts}

    model = tokenizers.models.BPE(
        vocab={text: id_ for id_, text in sorted(texts.items())}, merges=[], unk_token="<unk>"
    )
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.decoder = tokenizers.decoders.Fuse()
    unknown = next(id_ for id_, text in texts.items() if text == "<unk>")
    written = [texts[id_] for id_ in sorted({*special, unknown})]
    tokenizer.add_special_tokens([tokenizers.AddedToken(text, special=True, normalized=False) for text in written])
    roles = {"unk_token": "<unk>", "pad_token": texts.get(padding_token(config), "<unk>")}
    for role in ("bos_token", "eos_token"):
        token = _first(config, f"{role}_id")
        if token in texts:
            roles[role] = texts[token]
    media = ((role, _first(config, f"{role}_token_id", f"{role}_token_index")) for role in _MEDIA)
    extra = {f"{role}_token": texts[id_] for role, id_ in media if id_ in texts}
    _add_template(tokenizer, config, roles, texts)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side="left" if chats else "right",
        extra_special_tokens=extra,
        clean_up_tokenization_spaces=False,
        **roles,
    )
    if chats:
        fast.chat_template = CHAT_TEMPLATE
    return fast


def _first(config: Any, *names: str) -> int | None:
    for part in nested(config):
        for name in names:
            value = getattr(part, name, None)
            value = value[0] if isinstance(value, (list, tuple)) and value else value
            if isinstance(value, int):
                return value
    return None


def _add_template(tokenizer: Any, config: Any, roles: dict[str, str], texts: dict[int, str]) -> None:
    """Texts of encoder-decoder models end with the end token, all others begin with the first one."""
    import tokenizers

    ids = {text: id_ for id_, text in texts.items()}
    ends = bool(getattr(config, "is_encoder_decoder", False))
    token = roles.get("eos_token" if ends else "bos_token")
    if token is None:
        return
    single = ["$A", token] if ends else [token, "$A"]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single=single, pair=[*single, "$B:1"], special_tokens=[(token, ids[token])]
    )
