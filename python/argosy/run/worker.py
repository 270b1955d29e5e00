"""Opens a bundle in its engine. A process of its own that imports nothing of this package, as users run bundles.

    python worker.py ENGINE FOLDER [--cpu]

With ``--cpu`` a bundle for another device runs on the CPU. The first line on stdout is ``{"version", "seconds"}``, or ``{"missing"}`` (which module) or ``{"error"}``. Then each line of
stdin, a JSON object, is answered by one. A request has ``max_new_tokens`` and one of

    "ids": [[…], …]      rows of token ids, of any lengths and without padding
    "text": "…"          with "chat" (apply the chat template), "images" and "audios" (files), "stream"
    "feed": [[[…], …], …]   prompts in pieces, one after the other: writes the logits behind each piece to "logits" (.npz)
    "encode": ["…", …]   gives "ids" as the engine's own tokenizer makes them
    "prepare": "FILE"    with what goes with "text": writes what the engine's processor makes of it (.npz), gives "names"
    "tensors": "FILE"    inputs that are prepared already (.npz)

``sampling``: with "temperature", "top_k" (0: all), "top_p" (1: all) and "seed"; tokens of a text are then drawn, the same
ones for the same seed. Without it the best logit decides, as it always does for "ids".
``system``: with "chat", what the conversation begins with.
``adapter``: a file of the folder, a LoRA adapter that is active in this request (GenAI alone).
Answers have ``tokens`` (of each row, new ones only, up to and with the one that ends it), for texts ``text`` and
``prompt_tokens``, and ``seconds``; with "stream" lines ``{"piece"}`` come before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

#: Not for bundles that are to run without them.
BLOCKED = {"genai": ("torch", "transformers", "argosy", "huggingface_hub", "tokenizers"), "optimum": ("argosy",),
           "executorch": ("transformers", "argosy", "huggingface_hub")}  # fmt: skip


def opened(engine: str, folder: str, on_cpu: bool) -> Any:
    """An object with ``version``, ``ids(rows, count)``, ``text(request, on_piece)`` and ``encode(texts)``."""
    if engine == "genai":
        import genai_worker

        return genai_worker.Session(folder, on_cpu)
    if engine == "executorch":
        import executorch_runner

        return executorch_runner.Session(folder)
    import optimum_worker

    return optimum_worker.Session(folder)


def answer(session: Any, request: dict[str, Any]) -> dict[str, Any]:
    if "encode" in request:
        return {"ids": session.encode(request["encode"])}
    if "prepare" in request:
        return {"names": session.prepare(request)}
    if "feed" in request:
        session.feed(request["feed"], request["logits"])
        return {}
    start = time.perf_counter()
    if request.get("adapter") or hasattr(session, "use_adapter"):
        session.use_adapter(request.get("adapter", ""))
    if "ids" in request:
        made = {"tokens": session.ids(request["ids"], request["max_new_tokens"])}
    else:
        on_piece = (lambda text: say({"piece": text})) if request.get("stream") else lambda text: None
        made = session.tensors(request, on_piece) if "tensors" in request else session.text(request, on_piece)
    return {**made, "seconds": time.perf_counter() - start}


def one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:600]


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), file=_ANSWERS, flush=True)


def serve(engine: str, folder: str, on_cpu: bool) -> int:
    start = time.perf_counter()
    try:
        session = opened(engine, folder, on_cpu)
    except ModuleNotFoundError as error:
        say({"missing": f"no module named {error.name!r}"})
        return 1
    except Exception as error:  # noqa: BLE001 - what an engine says of a bundle is the answer
        say({"error": one_line(error)})
        return 1
    say({"version": session.version, "seconds": time.perf_counter() - start})
    for line in sys.stdin:
        try:
            say(answer(session, json.loads(line)))
        except Exception as error:  # noqa: BLE001
            say({"error": one_line(error)})
    return 0


_ANSWERS = sys.stdout

if __name__ == "__main__":
    for blocked in BLOCKED.get(sys.argv[1], ()):
        sys.modules[blocked] = None  # type: ignore[assignment]
    # What libraries print is no answer, be they Python's or not.
    _ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
    sys.stdout = sys.stderr
    os.dup2(2, 1)
    sys.exit(serve(sys.argv[1], sys.argv[2], "--cpu" in sys.argv[3:]))
