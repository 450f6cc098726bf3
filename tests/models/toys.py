"""Models of one small random layer, whose results can be checked by eye; refused folders."""

import copy
import json

import pytest
import torch
from reference import CLOSE
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from lmdiag.models import LoadOptions, load
from lmdiag.models.loading.load import Parts
from lmdiag.models.local import assemble
from lmdiag.types import BadInput


def gpt2(size, **config):
    """A random GPT-2 whose probabilities are spread, the same in every run."""
    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 96}
    shape |= {"bos_token_id": 0, "eos_token_id": 0} | config
    return _spread(GPT2LMHeadModel(GPT2Config(vocab_size=size, **shape)))


def bert(size, **config):
    """A random BERT whose probabilities are spread, the same in every run."""
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    shape |= {"intermediate_size": 24, "max_position_embeddings": 64} | config
    return _spread(BertForMaskedLM(BertConfig(vocab_size=size, **shape)))


def _spread(model):
    """Draws weights wide enough for every position to matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval().requires_grad_(False)


def asked(network, tokenizer, kind, **options):
    """Puts network and tokenizer together as `models.load` does with those of a folder."""
    parts = Parts(network, tokenizer, kind, commit="toy", training_step=None)
    return assemble("toy", parts, LoadOptions(**options))


def ask(model, *questions, top=5):
    """Returns the answers to questions asked together."""
    return model.answer([model.encode(question) for question in questions], top)


def check_same(first, second):
    """Answers to the same questions are the same up to float32, in which near ties may swap."""
    for one, other in zip(first, second, strict=True):
        assert one.entropy == pytest.approx(other.entropy, abs=CLOSE)
        assert one.top_log_probs == pytest.approx(other.top_log_probs, abs=CLOSE)
        known = dict(zip(other.top_words, other.top_log_probs, strict=True))
        for shown, value in zip(one.top_words, one.top_log_probs, strict=True):
            is_close = abs(known.get(shown, other.top_log_probs[-1]) - value) < CLOSE
            assert is_close or shown is None, shown
        for word, score in one.words.items():
            right = other.words[word]
            assert score.n_tokens == right.n_tokens, word
            assert score.rank == pytest.approx(right.rank, abs=1), word
            assert score.log_prob == pytest.approx(right.log_prob, abs=CLOSE), word


def alone(network, ids, position):
    """Returns the log-probabilities at a position: the whole model, one row, float64."""
    exact = copy.deepcopy(network).double()
    logits = exact(input_ids=torch.tensor([list(ids)])).logits
    return logits[0, position].log_softmax(-1)


def refusal(model, **options):
    """Returns the one line with which a model is refused; it names the model."""
    with pytest.raises(BadInput) as caught:
        load(str(model), LoadOptions(**options))
    message = str(caught.value)
    assert message.isprintable()
    assert str(model) in message
    assert "secret" not in message
    assert len(message) < 1000
    return message


def edit(folder, file, **changes):
    content = json.loads((folder / file).read_text("utf-8")) | changes
    (folder / file).write_text(json.dumps(content), "utf-8")
