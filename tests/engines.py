"""A serving engine on the loopback that reads the causal demo model, and can be told to misbehave.

`Engine` answers `/v1/completions` for token ids as vLLM does (`vllm`: `prompt_logprobs`, ids in
lists) or as SGLang does (`sglang`: `echo`, texts in lists).
"""

import json
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from lmdiag.models.demo import demo_folder

TOKENIZER = str(demo_folder("causal"))


class Answer(NamedTuple):
    """What goes over the wire; a body may have no end, or end before its announced length."""

    body: bytes | Iterator[bytes]
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


@cache
def demo_model():
    """Tokenizer and network, read by transformers."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(TOKENIZER).eval()
    return AutoTokenizer.from_pretrained(TOKENIZER), model


@cache
def text(token):
    return str(demo_model()[0].decode([token]))


@cache
def log_probs(ids):
    """(len(ids), vocabulary): row i is the distribution after ids[: i + 1], nats."""
    import torch

    with torch.no_grad():
        logits = demo_model()[1](torch.tensor([ids])).logits[0]
    return np.asarray(logits.double().log_softmax(-1).numpy())


def other_log_probs(ids):
    """What another model says: one whose logits are half as large."""
    rows = log_probs(ids) / 2
    return rows - np.log(np.exp(rows).sum(-1, keepdims=True))


class Engine(ThreadingHTTPServer):
    """An engine at `url` that lives as long as the `with` block.

    Attributes:
        log_probs: its model.
        spoil: makes what is sent from the honest document.
        bodies: of every request so far; keys: their `Authorization` headers.
        key: that requests need; None for no key.
        max_model_len: what it says of the tokens that it reads.
        most: longest list that may be asked for.
        most_at_once: the largest number of requests at the same time so far.
        hold: no request is answered before so many have come at the same time.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, dialect="vllm"):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.dialect = dialect
        self.log_probs = log_probs
        self.spoil = honest  # takes a request's body and the honest document
        self.bodies = []
        self.keys = []
        self.key = None
        self.max_model_len = 128
        self.most, self.most_at_once, self.hold = 20, 0, 0
        self.end = threading.Event()
        self._at_once = 0
        self._changed = threading.Condition()

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self.end.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that was killed is no error of the engine."""

    def answer(self, body, key):
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

    def document(self, body):
        """The honest answer."""
        ids, n_top = tuple(body["prompt"]), body["logprobs"]
        rows = self.log_probs(ids)
        nats = [None, *(float(rows[at, token]) for at, token in enumerate(ids[1:]))]
        name = text if self.dialect == "sglang" else "token_id:{}".format
        order = np.lexsort((np.arange(rows.shape[1]), -rows[-1]))[:n_top].tolist()
        top = {name(token): float(rows[-1, token]) for token in order}
        best = name(order[0])
        logprobs = {"tokens": [best], "token_logprobs": [top[best]], "top_logprobs": [top]}
        choice = {"index": 0, "text": "", "logprobs": logprobs}
        if body.get("echo"):
            logprobs["tokens"] = [*map(name, ids), *logprobs["tokens"]]
            logprobs["token_logprobs"] = [*nats, *logprobs["token_logprobs"]]
            logprobs["top_logprobs"] = [*(None for _ in ids), top]
        elif "prompt_logprobs" in body and self.dialect == "vllm":
            choice["prompt_logprobs"] = [
                value and {str(token): {"logprob": value, "decoded_token": text(token)}}
                for token, value in zip(ids, nats, strict=True)
            ]
        return {"object": "text_completion", "model": "tiny", "choices": [choice]}


def honest(body, document):
    return document


def refusal(status, message, **headers):
    return Answer(json.dumps({"error": {"message": message}}).encode(), status, headers)


def faults(number):
    """Spoils every so many requests: busy, failed, or the answer ends in its middle; all pass."""
    count = iter(range(10**9))

    def spoil(_, document):
        request = next(count)
        if request % number != number - 1:
            return document
        cut = Answer(iter([json.dumps(document).encode()[:30]]), headers={"Content-Length": "99"})
        busy = refusal(429, "busy", **{"Retry-After": "0.01"})
        return (busy, refusal(500, "the engine failed"), cut)[request // number % 3]

    return spoil


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Engine

    def do_GET(self):
        self._send({"data": [{"id": "tiny", "max_model_len": self.server.max_model_len}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(self.server.answer(body, self.headers.get("Authorization")))

    def _send(self, answer):
        body, status, headers = (
            Answer(json.dumps(answer).encode()) if isinstance(answer, dict) else answer
        )
        if isinstance(body, bytes):
            headers, body = {**headers, "Content-Length": str(len(body))}, iter([body])
        else:
            self.close_connection = True
        self.send_response(status)
        for header in headers.items():
            self.send_header(*header)
        self.end_headers()
        for part in body:
            self.wfile.write(part)
            self.wfile.flush()

    def log_message(self, format, *args):
        """Nothing is logged."""
