"""Greedy tokens of a bundle in its engine, beside ``generate`` of the eager model, one prompt at a time and in batches."""

from __future__ import annotations

import copy
import inspect
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..capture.swap import replaced
from ..run.runners import BundleProcess, RunError
from .calls import error_line
from .rows import Row

NEW_TOKENS = 32
TEXTS = (
    "The capital of France is",
    "Once upon a time there was a ship that",
    "def add(a, b):",
    "import os\n\nclass Reader:\n    def __init__(self",
    "Return the number of",
    "In the beginning",
    "if not isinstance(value, str):",
    "The quick brown fox jumps over the lazy dog and",
)
_LENGTHS = (5, 9, 13, 7, 11, 4, 6, 8)
BATCH = 3


@dataclass
class ExpectedRun:
    """Prompts of one run, and what eager generates for each. ``reason``: why it could not, no fault of the bundle."""

    prompts: list[list[int]]
    #: new ones only, up to and with the one that ends a row
    tokens: list[list[int]] = field(default_factory=list)
    #: how far eager's best logit is above the next, of the size of the logits; for each token of each row
    margins: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    reason: str = ""
    note: str = ""
    #: the same of a batch with its padding behind the prompts, where the engine has it and eager minds it
    behind: list[list[int]] | None = None

    @property
    def distinct(self) -> int:
        """Of the row that has the fewest different tokens."""
        return min((len(set(row)) for row in self.tokens), default=0)


def expected_runs(
    model: torch.nn.Module, folder: Path | None, count: int = NEW_TOKENS, *, batches: bool = True, own_settings: bool = False,
    pads_behind: bool = False,
) -> list[ExpectedRun]:  # fmt: skip
    """Single prompts and a batch of them. A prompt whose continuation repeats itself shows little: the first ones are
    taken that have a quarter of their tokens distinct, as far as there are any. `pads_behind`: the engine's batches have
    padding elsewhere than eager's, so that a model which minds padding is compared with its single prompts."""
    runs = []
    for prompt in _prompts(model, folder):
        runs.append(generated(model, [prompt], count, own_settings))
        if sum(each.distinct * 4 >= count for each in runs) == BATCH:
            break
    runs.sort(key=lambda each: each.distinct * 4 < count)  # stable: good ones first, in their order
    runs = runs[:BATCH]
    lengths = {len(each.prompts[0]) for each in runs}
    if batches and len(lengths) > 1:
        batch = generated(model, [each.prompts[0] for each in runs], count, own_settings)
        alone = [row for each in runs for row in each.tokens]
        if pads_behind and batch.tokens and len(alone) == len(batch.tokens) and alone != batch.tokens:
            batch.tokens, batch.margins = alone, [row for each in runs for row in each.margins]
            batch.note = "eager's own padded batch gives other tokens than its prompts one by one, which are compared"
        if pads_behind and batch.tokens:
            behind = padded_behind(model, batch.prompts, count)
            batch.behind = behind if behind != batch.tokens else None
        runs.append(batch)
    return runs


def _prompts(model: torch.nn.Module, folder: Path | None) -> list[list[int]]:
    """Words where ``folder`` has a tokenizer that knows them, else random ids that mean nothing special."""
    special = special_ids(model)
    if folder is not None and (folder / "tokenizer.json").is_file():
        try:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            found = [tokenizer(text)["input_ids"] for text in TEXTS]
            unknown = {tokenizer.unk_token_id} - {None}
            if all(row and row[-1] not in special and not unknown & set(row) for row in found):
                return found
        except Exception:  # noqa: BLE001 - random ids are as good
            pass
    return [random_ids(model, length, seed=7 + number)[0].tolist() for number, length in enumerate(_LENGTHS)]


def random_ids(model: torch.nn.Module, length: int, seed: int) -> torch.Tensor:
    """[1, length] tokens that mean nothing special."""
    special = special_ids(model)
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    allowed = torch.tensor([token for token in range(vocabulary) if token not in special])
    return allowed[torch.randint(len(allowed), (1, length), generator=torch.Generator().manual_seed(seed))]


def special_ids(model: torch.nn.Module) -> set[int]:
    """Every id that the configuration names."""
    found: set[int] = set()
    for config in (model.config, model.config.get_text_config(decoder=True), model.generation_config):
        for name, value in config.to_dict().items():
            if name.endswith(("token_id", "token_index", "token_ids")):
                values = value if isinstance(value, list) else [value]
                found |= {each for each in values if isinstance(each, int) and not isinstance(each, bool)}
    return found


def generated(model: torch.nn.Module, prompts: list[list[int]], count: int, own_settings: bool) -> ExpectedRun:
    """``own_settings``: with the penalties and forced tokens of the model's generation configuration, for engines that read
    it; else nothing but the best logit decides, and what ends a row."""
    from transformers import GenerationConfig

    own = model.generation_config
    ends = own.eos_token_id
    pad = own.pad_token_id if own.pad_token_id is not None else (ends[0] if isinstance(ends, list) else ends) or 0
    if own_settings:
        settings = copy.deepcopy(own)
        settings.update(max_length=None)
    else:
        settings = GenerationConfig(eos_token_id=ends, bos_token_id=own.bos_token_id,
                                    decoder_start_token_id=own.decoder_start_token_id)  # fmt: skip
    settings.update(max_new_tokens=count, do_sample=False, num_beams=1, pad_token_id=pad, return_dict_in_generate=True,
                    output_logits=True)  # fmt: skip
    start = time.perf_counter()
    try:
        with torch.no_grad(), replaced(model, "generation_config", settings):
            made = model.generate(**padded(prompts, pad, bool(model.config.is_encoder_decoder)))
    except Exception as error:  # noqa: BLE001 - generate runs code of the model's own
        return ExpectedRun(prompts, reason=f"generate of the eager model fails: {error_line(error)}")
    steps = torch.stack([step.float() for step in made.logits], dim=1)  # [rows, tokens, vocabulary]
    new = made.sequences[:, -steps.shape[1] :]
    best = steps.topk(2, dim=-1).values
    margins = (best[..., 0] - best[..., 1]) / steps.abs().amax(-1).clamp_min(1.0)
    stops = set(ends if isinstance(ends, list) else [ends])
    tokens = [up_to_end(row, stops) for row in new.tolist()]
    return ExpectedRun(prompts, tokens, margins.tolist(), time.perf_counter() - start)


def padded_behind(model: torch.nn.Module, prompts: list[list[int]], count: int) -> list[list[int]] | None:
    """What eager says to a batch whose padding is behind the prompts and masked, as some engines' is: their last tokens are
    gone on from, and the padding stays in the cache. Models that count positions by the length of the cache, or whose state goes
    through the padding, mind that. None if it cannot be done."""
    try:
        return _padded_behind(model, prompts, count)
    except Exception:  # noqa: BLE001 - models are others' code, and not all take padding there
        return None


def _padded_behind(model: torch.nn.Module, prompts: list[list[int]], count: int) -> list[list[int]]:
    names = inspect.signature(model.forward).parameters
    states = "past_key_values" if "past_key_values" in names else "cache_params"
    ends = model.generation_config.eos_token_id
    given = padded(prompts, 0, at_end=True)
    ids, mask = given["input_ids"], given["attention_mask"]
    positions = (mask.cumsum(1) - 1).clamp_min(0)
    last, cache, rows = mask.sum(1) - 1, None, []
    with torch.no_grad():
        for _ in range(count):
            arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, states: cache, "use_cache": True}
            if states == "cache_params" and cache is not None:
                arguments.pop("attention_mask")  # as generate does: the mask is for prompts
            made = model(**{name: value for name, value in arguments.items() if name in names})
            cache = made[states]
            best = made.logits[torch.arange(len(prompts)), last].argmax(-1)
            rows.append(best)
            positions = positions.gather(1, last[:, None]) + 1
            ids, last = best[:, None], torch.zeros_like(last)
            mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
    stops = set(ends if isinstance(ends, list) else [ends])
    return [up_to_end(row, stops) for row in torch.stack(rows, dim=1).tolist()]


def padded(prompts: list[list[int]], pad: int, at_end: bool) -> dict[str, torch.Tensor]:
    """Rows of one length with their mask, as decoders take them (padding first) or encoders (``at_end``)."""
    longest = max(map(len, prompts))
    rows, masks = [], []
    for prompt in prompts:
        filler, ones = [pad] * (longest - len(prompt)), [1] * len(prompt)
        rows.append(prompt + filler if at_end else filler + prompt)
        masks.append(ones + [0] * len(filler) if at_end else [0] * len(filler) + ones)
    return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(masks)}


def up_to_end(tokens: list[int], ends: set[Any]) -> list[int]:
    return next((tokens[: i + 1] for i, token in enumerate(tokens) if token in ends), tokens)


def run_bundle(process: BundleProcess, expected: ExpectedRun, count: int, tolerance: float, adapter: str = "") -> Row:
    """Every row's tokens must agree, up to the first whose two best logits are closer than the tolerance allows for. ``adapter``: the
    file of the bundle that is active."""
    lengths = [len(prompt) for prompt in expected.prompts]
    shape = f"prompt of {lengths[0]}" if len(lengths) == 1 else f"padded batch of {', '.join(map(str, lengths))}"
    row = Row("bundle", "tokens", f"{shape}, {count} new tokens", None, seconds_model=expected.seconds)
    if expected.reason:
        row.note = expected.reason
        return row
    try:
        made = process.ask({"ids": expected.prompts, "max_new_tokens": count, "adapter": adapter})
    except RunError as error:
        row.ok, row.note = False, str(error)
        return row
    row.seconds_program = made["seconds"]
    judge(row, expected, made["tokens"], tolerance)
    if row.ok is False and made["tokens"] == expected.behind:
        row.ok = row.excused = True
        row.note = "the model minds the engine's padding, which is behind prompts: eager gives the same tokens with the same padding"
    row.note = "; ".join(filter(None, (row.note, expected.note)))
    if expected.distinct * 4 < count:
        row.note = "; ".join(filter(None, (row.note, f"only {expected.distinct} of eager's tokens are distinct")))
    return row


def judge(row: Row, expected: ExpectedRun, made: list[list[int]], tolerance: float) -> None:
    """Sets the verdict: how many tokens agree, and for the first that does not how near a tie eager was at."""
    row.ok, notes, agreed = True, [], 0
    for number, (ours, theirs, margins) in enumerate(zip(made, expected.tokens, expected.margins, strict=True)):
        if ours == theirs:
            agreed += len(theirs)
            continue
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))  # noqa: B905
        agreed += at
        where = f"row {number + 1}, " if len(made) > 1 else ""
        if at >= len(theirs) or at >= len(ours):
            row.ok = False
            notes.append(f"{where}{len(ours)} tokens instead of {len(theirs)}")
            continue
        near = margins[at] <= 2 * tolerance  # each of the two logits may be off by that much
        row.ok = row.ok and near
        notes.append(f"{where}token {at + 1} is {ours[at]} instead of {theirs[at]}, eager's two best logits are "
                     f"{margins[at]:.1e} of their size apart" + (f", a near tie (up to {2 * tolerance:g})" if near else ""))  # fmt: skip
    row.tokens = (agreed, sum(map(len, expected.tokens)))
    row.note = "; ".join(notes)


def agreement_row(process: BundleProcess, original: list[ExpectedRun], count: int) -> Row:
    """How many of a quantised bundle's greedy tokens are those of the model as it is: a figure, not a verdict."""
    row = Row("bundle", "quality", f"{count} new tokens", True, measures=True)
    agreed = total = 0
    for each in original:
        if each.reason:
            continue
        made = process.ask({"ids": each.prompts, "max_new_tokens": count})["tokens"]
        for ours, theirs in zip(made, each.tokens, strict=True):
            same = [a == b for a, b in zip(ours, theirs)]  # noqa: B905 - one may end earlier
            agreed += same.index(False) if False in same else len(same)
            total += len(theirs)
    row.note = f"{agreed} of {total} greedy tokens, up to the first that differs, are those of the unquantised model"
    return row


def tokenizer_row(process: BundleProcess, folder: Path) -> Row | None:
    """The engine's own tokenizer beside that of transformers; None where the model has none."""
    if not (folder / "tokenizer.json").is_file():
        return None
    row = Row("bundle", "tokenizer", f"{len(TEXTS)} texts", None)
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        wanted = [tokenizer(text)["input_ids"] for text in TEXTS]
    except Exception as error:  # noqa: BLE001 - code of the tokenizer's own
        row.note = f"the tokenizer of transformers fails: {error_line(error)}"
        return row
    try:
        made = process.ask({"encode": list(TEXTS)})["ids"]
    except RunError as error:
        row.ok, row.note = False, str(error)
        return row
    wrong = [i for i, (ours, theirs) in enumerate(zip(made, wanted, strict=True)) if ours != theirs]
    row.ok = not wrong
    if wrong:
        # Twins know single letters only, which is no tokenizer that engines have.
        row.ok = None if not json.loads((folder / "tokenizer.json").read_text())["model"].get("merges", True) else False
        first = wrong[0]
        row.note = f"{len(wrong)} texts differ, {TEXTS[first]!r} is {made[first][:8]} instead of {wanted[first][:8]}"
    return row
