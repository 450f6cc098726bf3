"""Serving engines on the loopback, with known probabilities and in the dialects of real ones.

`Engine` answers `/v1/completions` as vLLM (`vllm`) or as llama-cpp-python (`llama`) does. What it
says comes from `Weights`: the causal demo model read by transformers, or a table of word pairs that
anyone can compute. It can be told to fail, for single requests or in all of them.

By hand: `PYTHONPATH=tests python -m engines --dialect vllm`.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import socket
import struct
import threading
from collections.abc import Callable
from functools import cached_property, lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol

import numpy as np
from limits import HANG

from lmdiag.models.server.checks import _CONTEXTS

_WORDS = re.compile(r" ?\w+")

Dialect = Literal["vllm", "llama"]
Ids = tuple[int, ...]


class Weights(Protocol):
    """A causal model: what it tokenises, and what it expects next."""

    bos: int
    eos: int

    def encode(self, text: str) -> Ids: ...

    def piece(self, token: int) -> bytes: ...

    def log_probs(self, ids: Ids) -> np.ndarray:
        """(len(ids), vocabulary): row i is the distribution after ids[: i + 1], nats."""
        ...


class DemoWeights:
    """The causal demo model, read by transformers."""

    bos = eos = 0

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from lmdiag.models.demo import demo_folder

        folder = demo_folder("causal")
        return (
            AutoTokenizer.from_pretrained(folder),
            AutoModelForCausalLM.from_pretrained(folder).eval(),
        )

    def encode(self, text: str) -> Ids:
        return tuple(self._parts[0](text, add_special_tokens=False)["input_ids"])

    @cached_property
    def _vocabulary(self) -> Any:
        from lmdiag.models.tokens.vocabulary import Vocabulary

        return Vocabulary(self._parts[0])

    def piece(self, token: int) -> bytes:
        return self._vocabulary.item(token).surface or b""

    @lru_cache(maxsize=20_000)  # noqa: B019 (one model for a whole session)
    def log_probs(self, ids: Ids) -> np.ndarray:
        import torch

        with torch.no_grad():
            logits = self._parts[1](torch.tensor([ids])).logits[0]
        return np.asarray(logits.float().log_softmax(-1).numpy())


class TableWeights:
    """Words are tokens, and the distribution after a word is a row of a table.

    The vocabulary is `w` and two letters, and what the self-check of lmdiag asks. After ` wtt` the
    text ends.
    """

    bos, eos = 0, 1

    def __init__(self) -> None:
        letters = "abcdefghijklmnopqrst"
        words = [f" w{a}{b}" for a in letters for b in letters]
        english = [word for text in _CONTEXTS for word in _WORDS.findall(text)]
        self.pieces = ["", "", *dict.fromkeys([*words, *(w.strip() for w in words), *english])]
        self.ids = {piece: number for number, piece in enumerate(self.pieces)}
        logits = 2 * np.random.default_rng(0).normal(size=(len(self.pieces), len(self.pieces)))
        logits[:, [not piece.startswith(" ") for piece in self.pieces]] -= 20
        logits[self.ids[" wtt"], self.eos] = 40  # the text ends after this word
        self.table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def encode(self, text: str) -> Ids:
        return tuple(self.ids[word] for word in _WORDS.findall(text))

    def piece(self, token: int) -> bytes:
        return self.pieces[token].encode()

    def log_probs(self, ids: Ids) -> np.ndarray:
        return np.asarray(self.table[list(ids)])


class Refused(Exception):
    """What the engine answers with a status of an error."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Engine:
    """An engine at `url` that lives as long as the `with` block.

    Attributes:
        bodies: of every request that was answered or failed.
        keys: `Authorization` headers that came, in order; None where there was none.
        fault: number of a request, from 0 -> what goes wrong with it; None for nothing. See
            `FAULTS`.
        habit: what is wrong with every answer; None for nothing. See `Engine.spoil`.
        most: longest list that may be asked for.
        most_at_once: the largest number of requests at the same time so far.
        hold: no request is answered before so many have come at the same time.
    """

    def __init__(
        self, weights: Weights, dialect: Dialect = "vllm", *, name: str = "tiny", port: int = 0
    ) -> None:
        self.weights, self.dialect, self.name = weights, dialect, name
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.fault: Callable[[int], str | None] = lambda number: None
        self.habit: str | None = None
        self.key: str | None = None
        self.most = 20
        self.most_at_once = self._at_once = 0
        self.hold = 0
        self._held = threading.Event()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Engine:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    # ---- one request -----------------------------------------------------------------------------

    def arrived(self, body: dict[str, Any], key: str | None) -> int:
        """Takes down a request; returns its number."""
        with self._lock:
            self.bodies.append(body)
            self.keys.append(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            if self._at_once >= self.hold:
                self._held.set()
            return len(self.bodies) - 1

    def left(self) -> None:
        with self._lock:
            self._at_once -= 1

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answers a request for a completion."""
        if self.hold:
            assert self._held.wait(HANG)
        if self.dialect == "llama" and not isinstance(body["prompt"], str):
            raise Refused(422, "Input should be a valid string")
        if body["model"] != self.name and self.dialect == "vllm":
            raise Refused(404, f"The model `{body['model']}` does not exist.")
        n_top = body.get("logprobs")
        if n_top is not None and n_top > self.most:
            raise Refused(400, f"Requested sample logprobs of {n_top}, max allowed: {self.most}")
        shown, ids = self._ids(body["prompt"])
        rows = self.weights.log_probs(ids)
        best = int(rows[-1].argmax())
        ends = self.dialect == "llama" and best == self.weights.eos
        generated = [] if ends else [best]
        values = [None, *(float(rows[i, token]) for i, token in enumerate(ids[1:]))]
        values = [None, *values[len(ids) - len(shown) + 1 :]]
        tokens, tops = list(shown), [None, *rows[len(ids) - len(shown) : -1]]
        answer = {
            "echoed": (tokens, values, tops),
            "generated": (
                generated,
                [float(rows[-1, token]) for token in generated],
                [rows[-1] for _ in generated],
            ),
        }
        self.spoil(answer)
        return self._document(body, answer)

    def _ids(self, prompt: str | list[int]) -> tuple[Ids, Ids]:
        """The tokens that are echoed, and those that the model reads."""
        if not isinstance(prompt, str):
            return tuple(prompt), tuple(prompt)
        ids = self.weights.encode(prompt)
        return (ids, (self.weights.bos, *ids)) if self.dialect == "llama" else (ids, ids)

    def spoil(self, answer: dict[str, Any]) -> None:
        """Makes an answer wrong in the way of `habit`."""
        tokens, values, tops = answer["echoed"]
        generated, own, next_tops = answer["generated"]
        if self.habit == "no prompt":
            answer["echoed"] = ([], [], [])
        elif self.habit == "null prompt":
            answer["echoed"] = (tokens, [None] * len(values), tops)
        elif self.habit == "shifted":
            answer["echoed"] = (tokens, [None, None, *values[1:-1]][: len(values)], tops)
            answer["echoed"][1][1] = -1.0
        elif self.habit == "warm":
            warm = [row / 0.5 - np.log(np.exp(row / 0.5).sum()) for row in next_tops]
            answer["generated"] = (generated, [float(warm[0].max())] if warm else own, warm)
        elif self.habit == "logits":
            answer["generated"] = (generated, own, [row * 0.1 for row in next_tops])
        elif self.habit == "restless":
            drift = 0.01 * len(self.bodies)
            moved = [value and value - drift for value in values]
            answer["echoed"] = (tokens, moved, tops)
        elif self.habit == "nan":
            answer["echoed"] = (tokens, [value and math.nan for value in values], tops)
        elif self.habit == "positive":
            answer["echoed"] = (tokens, [value and -value for value in values], tops)

    def _document(self, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        by_id = bool(body.get("return_tokens_as_token_ids")) and self.dialect == "vllm"
        n_top = body.get("logprobs") or 0
        tokens, values, _ = answer["echoed"]
        n_generated = len(answer["generated"][0])
        parts = zip(answer["echoed"], answer["generated"], strict=True)
        listed = [a + b for a, b in parts] if body.get("echo") else answer["generated"]
        names = [self._name(token, by_id) for token in listed[0]]
        lists = [
            None if row is None else self._list(row, n_top, by_id) | {name: value}
            for row, name, value in zip(listed[2], names, listed[1], strict=True)
        ]
        choice: dict[str, Any] = {
            "text": "", "index": 0, "finish_reason": "length",
            "logprobs": {
                "tokens": names, "token_logprobs": listed[1], "top_logprobs": lists,
                "text_offset": [-1] * len(names),
            },
        }  # fmt: skip
        if body.get("prompt_logprobs") is not None and self.dialect == "vllm":
            choice["prompt_logprobs"] = [
                value
                if value is None
                else {str(token): {"logprob": value, "rank": 1, "decoded_token": self._name(token)}}
                for token, value in zip(tokens, values, strict=True)
            ]
        usage = {"prompt_tokens": len(tokens), "completion_tokens": n_generated}
        return {
            "object": "text_completion",
            "model": self.name,
            "choices": [choice],
            "usage": usage,
        }

    def _list(self, row: np.ndarray, n_top: int, by_id: bool) -> dict[str, float]:
        order = np.lexsort((np.arange(len(row)), -row))[:n_top]
        return {self._name(int(token), by_id): float(row[token]) for token in order}

    def _name(self, token: int, by_id: bool = False) -> str:
        errors = "ignore" if self.dialect == "llama" else "replace"
        text = self.weights.piece(token).decode(errors=errors)
        text = "JOINED" + text if self.habit == "other text" else text
        return f"token_id:{token}" if by_id else text


FAULTS = ("drop", "429", "500", "cut", "html", "slow 429")
"""What can go wrong with a single request: the connection ends without an answer, or within it; the
server is busy (and says for how long), fails, or answers with a page."""


def every(number: int) -> Callable[[int], str | None]:
    """A fault in every so many requests, each of `FAULTS` in turn; never twice in a row."""

    def fault(request: int) -> str | None:
        return FAULTS[request // number % 5] if request % number == number - 1 else None

    return fault


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no error of the engine."""


def _handler(engine: Engine) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            models = [{"id": engine.name, "object": "model", "max_model_len": 128}]
            self._send(200, json.dumps({"data": models}).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers.get("Authorization")
            number = engine.arrived(body, key)
            try:
                if engine.key is not None and key != f"Bearer {engine.key}":
                    raise Refused(401, f"invalid key {key}")
                fault = engine.fault(number)
                if fault == "drop":
                    self._reset()
                    return
                if fault in ("429", "slow 429"):
                    raise Refused(429, "busy", **{"Retry-After": "0.01" if fault == "429" else "1"})
                if fault == "500":
                    raise Refused(500, "the engine failed")
                if fault == "html":
                    self._send(200, b"<html>please wait</html>")
                    return
                content = json.dumps(engine.complete(body)).encode()
                self._send(200, content, cut=fault == "cut")
            except Refused as refused:
                message = {"error": {"message": str(refused)}}
                self._send(refused.status, json.dumps(message).encode(), refused.headers)
            finally:
                engine.left()

        def _send(
            self, status: int, content: bytes, headers: Any = None, *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if cut else content)
            self.close_connection = cut

        def _reset(self) -> None:
            """Ends the connection at once, as a process that is killed does."""
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            self.connection.close()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dialect", choices=["vllm", "llama"], default="vllm")
    parser.add_argument("--weights", choices=["demo", "table"], default="demo")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    weights = DemoWeights() if args.weights == "demo" else TableWeights()
    with Engine(weights, args.dialect, port=args.port) as engine:
        print(engine.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
