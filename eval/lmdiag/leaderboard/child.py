"""The child process of one request: checks of its model by what the Hub has, then `lmdiag run`.

The board starts it as `python -P -m lmdiag.leaderboard.child BOARD MOST MODEL COMMIT run ...`,
in an empty directory and within limits: what a stranger wrote is read here, and not by the board.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

from lmdiag.files.hub_errors import plain_errors
from lmdiag.files.processes import end_with_parent
from lmdiag.files.reading import MAX_INDEX, parse_json, read_bytes
from lmdiag.types import BadInput

_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
"""The only file of weights of a model, or the file that lists several."""

MAX_SHARDS = 500
"""Files of weights of a model."""

_MOST_BYTES = 8
"""Bytes of a parameter in a file of weights, at most: those of float64."""

TOKEN = "LMDIAG_BOARD_TOKEN"
"""Variable with the token for gated models: it is the only one that a run gets."""

_PASSED = (
    "PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "XDG_CACHE_HOME", "LMDIAG_CACHE",
    "HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_XET",
    "HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
)  # fmt: skip
"""Variables of the board's environment that a run gets."""


def child_environment() -> dict[str, str]:
    """Returns the environment variables of a child process, name -> value.

    They are those that a run needs, and no token but the one for gated models.
    """
    env = {name: os.environ[name] for name in _PASSED if name in os.environ}
    # The saved token of the owner, which may write, is not read.
    env |= {"PYTHONSAFEPATH": "1", "HF_TOKEN_PATH": os.devnull}
    token = os.environ.get(TOKEN)
    if token:
        env["HF_TOKEN"] = token
    return env


def check_model(model: str, commit: str, most: int) -> None:
    """Checks a model by what the Hub says of it, before its weights are downloaded.

    Refused (`BadInput`) are another id or commit, missing safetensors weights, too many files of
    weights or parameters, and a header or an index that is damaged or too large.

    Args:
        model, commit: id on the Hub, and its commit.
        most: number of parameters that is allowed.
    """
    import httpx2
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError

    constants.SAFETENSORS_MAX_HEADER_LENGTH = MAX_INDEX  # bytes that the client reads
    api = HfApi()
    where = f"{model} at {commit[:12]}"
    with plain_errors(where):
        info = api.model_info(model, revision=commit, files_metadata=True)
        if (info.id, info.sha) != (model, commit):
            raise BadInput(f"the Hub has this model as {info.id} at {info.sha}: request that")
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        try:
            names = _weight_files(where, model, commit, sizes)
            size = sum(sizes.get(name, 0) for name in names)
            if size > _MOST_BYTES * most:
                raise BadInput(
                    f"{where} has {size:,} bytes of weights, too many for {most:,} parameters"
                )
            n_parameters = 0
            for name in names:
                header = api.parse_safetensors_file_metadata(model, name, revision=commit)
                n_parameters += sum(header.parameter_count.values())
        except (BadInput, HfHubHTTPError, httpx2.TransportError, ConnectionError):
            raise  # for `plain_errors`: they say nothing of the header
        except Exception:  # the header is a stranger's; the client does not check it
            raise BadInput(f"{where} has damaged safetensors weights") from None
    if n_parameters > most:
        raise BadInput(f"{where} has {n_parameters:,} parameters, more than {most:,}")


def _weight_files(where: str, model: str, commit: str, sizes: Mapping[str, int]) -> list[str]:
    """Returns the names of the safetensors files of a model on the Hub.

    They are ["model.safetensors"], or the files that the index of a model in several files lists.
    A model without such files, with too many of them, or with a too large index is refused
    (`BadInput`).

    Args:
        where: what messages call the model and its commit.
        model, commit: id on the Hub, and its commit.
        sizes: name of each file of the repository -> bytes.
    """
    from huggingface_hub import hf_hub_download

    if _WEIGHTS in sizes:
        return [_WEIGHTS]
    if _INDEX not in sizes:
        raise BadInput(f"{where} has no safetensors weights")
    if sizes[_INDEX] > MAX_INDEX:
        raise BadInput(f"{where} has an index of {sizes[_INDEX]:,} bytes, more than {MAX_INDEX:,}")
    content = read_bytes(Path(hf_hub_download(model, _INDEX, revision=commit)), MAX_INDEX)
    index = parse_json(content, f"{where}: its {_INDEX}")
    names = sorted(set(index["weight_map"].values()))
    if len(names) > MAX_SHARDS:
        raise BadInput(f"{where} has {len(names):,} files of weights, more than {MAX_SHARDS}")
    return names


def main(board: str, most: str, model: str, commit: str, *command: str) -> None:
    """Checks the model of a request, then runs a command of lmdiag in this process.

    Args:
        board: process id of the board; this process ends when the board does.
        most: number of parameters that is allowed.
        model, commit: id on the Hub, and its commit; a model of this machine has none ("") and is
            not checked.
        command: e.g. "run" and its options.
    """
    end_with_parent(int(board))
    if commit:
        try:
            check_model(model, commit, int(most))
        except BadInput as error:
            sys.exit(f"lmdiag: error: {error}")
    sys.argv = ["lmdiag", *command]
    runpy.run_module("lmdiag", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
