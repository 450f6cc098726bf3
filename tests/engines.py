"""A serving engine on the loopback that reads the causal demo model, and can be told to misbehave.

`Engine` answers `/v1/completions` for token ids as vLLM does (`vllm`: `prompt_logprobs`, ids in
lists) or as SGLang does (`sglang`: `echo`, texts in lists).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import numpy as np

from lmdiag.models.demo import demo_folder

TOKENIZER = str(demo_folder("causal"))

Document = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What goes over the wire; a body may have no end, or end before its announced length."""

    body: bytes | Iterator[bytes]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Weights:
    """The causal demo model, read by transformers."""

    @cached_property
    def _parts(self) -> tuple[Any, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(TOKENIZER).eval()
        return AutoTokenizer.from_pretrained(TOKENIZER), model

    def ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._parts[0](text, add_special_tokens=False)["input_ids"])

    @lru_cache(maxsize=20_000)  # noqa: B019 (one model for a whole session)
    def text(self, token: int) -> str:
        return str(self._parts[0].decode([token]))

    @lru_cache(maxsize=20_000)  # noqa: B019
    def log_probs(self, ids: tuple[int, ...]) -> np.ndarray:
        """(len(ids), vocabulary): row i is the distribution after ids[: i + 1], nats."""
        import torch

        with torch.no_grad():
            logits = self._parts[1](torch.tensor([ids])).logits[0]
        return np.asarray(logits.double().log_softmax(-1).numpy())


class Engine:
    """An engine at `url` that lives as long as the `with` block.

    Attributes:
        spoil: takes a request's body and the honest document; returns a document or an `Answer`.
        bodies: of every request so far; keys: their `Authorization` headers.
        key: that requests need; None for no key.
        most: longest list that may be asked for.
        most_at_once: the largest number of requests at the same time so far.
        hold: no request is answered before so many have come at the same time.
    """

    def __init__(
        self, weights: Weights, dialect: Literal["vllm", "sglang"] = "vllm", port: int = 0
    ) -> None:
        self.weights, self.dialect = weights, dialect
        self.spoil: Callable[[Document, Document], Document | Answer] = lambda _, document: document
        self.bodies: list[Document] = []
        self.keys: list[str | None] = []
        self.key: str | None = None
        self.most, self.most_at_once, self.hold = 20, 0, 0
        self.end = threading.Event()
        self._at_once = 0
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Engine:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: Document, key: str | None) -> Document | Answer:
        """Answers a request for a completion."""
        with self._changed:
            self.bodies.append(body)
            self.keys.append(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.most_at_once >= self.hold)
        try:
            if self.key is not None and key != f"Bearer {self.key}":
                return refusal(401, f"invalid key {key}")
            if body["logprobs"] > self.most:
                return refusal(400, f"max allowed: {self.most}")
            return self.spoil(body, self.document(body))
        finally:
            with self._changed:
                self._at_once -= 1

    def document(self, body: Document) -> Document:
        """The honest answer."""
        ids, n_top = tuple(body["prompt"]), body["logprobs"]
        rows = self.weights.log_probs(ids)
        nats = [None, *(float(rows[at, token]) for at, token in enumerate(ids[1:]))]
        best = int(rows[-1].argmax())
        name = self.weights.text if self.dialect == "sglang" else "token_id:{}".format
        order = np.lexsort((np.arange(rows.shape[1]), -rows[-1]))[:n_top]
        top = {name(int(token)): float(rows[-1, token]) for token in order}
        logprobs: Document = {
            "tokens": [name(best)], "token_logprobs": [top[name(best)]], "top_logprobs": [top],
        }  # fmt: skip
        choice: Document = {"index": 0, "text": "", "logprobs": logprobs}
        if body.get("echo"):
            logprobs["tokens"] = [*map(name, ids), *logprobs["tokens"]]
            logprobs["token_logprobs"] = [*nats, *logprobs["token_logprobs"]]
            logprobs["top_logprobs"] = [*(None for _ in ids), top]
        elif "prompt_logprobs" in body and self.dialect == "vllm":
            choice["prompt_logprobs"] = [
                value
                and {str(token): {"logprob": value, "decoded_token": self.weights.text(token)}}
                for token, value in zip(ids, nats, strict=True)
            ]
        return {"object": "text_completion", "model": "tiny", "choices": [choice]}


def refusal(status: int, message: str, **headers: str) -> Answer:
    return Answer(json.dumps({"error": {"message": message}}).encode(), status, headers)


def faults(number: int) -> Callable[[Document, Document], Document | Answer]:
    """Spoils every so many requests: busy, failed, or the answer ends in its middle; all pass."""
    count = iter(range(10**9))

    def spoil(_: Document, document: Document) -> Document | Answer:
        request = next(count)
        if request % number != number - 1:
            return document
        cut = Answer(iter([json.dumps(document).encode()[:30]]), headers={"Content-Length": "99"})
        busy = refusal(429, "busy", **{"Retry-After": "0.01"})
        return (busy, refusal(500, "the engine failed"), cut)[request // number % 3]

    return spoil


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
            self._send({"data": [{"id": "tiny", "max_model_len": 128}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(engine.answer(body, self.headers.get("Authorization")))

        def _send(self, answer: Document | Answer) -> None:
            if isinstance(answer, dict):
                answer = Answer(json.dumps(answer).encode())
            self.send_response(answer.status)
            headers = dict(answer.headers)
            if isinstance(answer.body, bytes):
                headers["Content-Length"] = str(len(answer.body))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = not isinstance(answer.body, bytes)
            for part in [answer.body] if isinstance(answer.body, bytes) else answer.body:
                self.wfile.write(part)
                self.wfile.flush()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    return Handler
