"""The zero-shot rule of BabyLM's evaluation pipeline (2025), beside the sensitivity of lmdiag.

The rule: the score of a sentence is the sum of the log-probabilities of its tokens, special ones
left out, each given the tokens before it, or with it alone masked; the candidate of the highest
score is chosen, the first of equal ones; the good one stands first.
"""

import pytest
import torch
from reference import load

import lmdiag

PAIRS = [
    ("The author laughs.", "The author laugh."),
    ("The authors laugh.", "The authors laughs."),
    ("The dogs near the gate bark loudly.", "The dogs near the gate barks loudly."),
    ("The dogs near the gate bark.", "The gate near the dogs bark."),  # as many tokens
]


def score(tokenizer, model, text):
    """The pipeline's score of a sentence, in the type of the model."""
    ids = torch.tensor(tokenizer(text)["input_ids"])
    special = torch.tensor(tokenizer.get_special_tokens_mask(ids, already_has_special_tokens=True))
    with torch.inference_mode():
        if tokenizer.mask_token is None:
            logits = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
            return logits.gather(-1, ids[1:, None]).sum()
        rows = ids.repeat(len(ids), 1).fill_diagonal_(tokenizer.mask_token_id)
        logits = model(input_ids=rows).logits.diagonal(dim1=0, dim2=1).T.log_softmax(-1)
        return logits.gather(-1, ids[:, None])[special == 0].sum()


@pytest.mark.parametrize(("family", "option"), [("gpt2", "bos"), ("bert", "pll")])
def test_both_choose_alike_but_for_ties(family, option, family_dir, tmp_path):
    folder = family_dir(family)
    tokenizer, model = load(folder, "causal" if family == "gpt2" else "masked", "eager")
    equal = tmp_path / "equal"
    tokenizer.save_pretrained(equal)
    for asked, is_equal in ((folder, False), (equal, True)):
        if is_equal:  # every token has the same probability
            for parameter in model.parameters():
                parameter.data.zero_()
            model.float().save_pretrained(equal)
        scores = torch.tensor([[score(tokenizer, model, text) for text in pair] for pair in PAIRS])
        chosen = scores.max(dim=1).indices == 0
        how = {option: "never" if family == "gpt2" else "original"}
        rows = lmdiag.load_stimuli([{"sentence_good": a, "sentence_bad": b} for a, b in PAIRS])
        measured = lmdiag.measure(lmdiag.load_model(str(asked), **how).predict(rows), rows)
        ties = (scores[:, 0] == scores[:, 1]).double().mean().item()
        assert measured["sensitivity"]["value"] == chosen.double().mean().item() - ties
        assert (ties > 0) == is_equal
