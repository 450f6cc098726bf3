"""A Hub on the loopback interface, for tests: real HTTP, repositories on disk, real clients.

`rules` says what the Hub accepts, `store` keeps repositories, `records` describes them, `server`
has the endpoints, `wire` the HTTP; `clients` sets up a client that knows nothing of any other Hub.
`pytest_plugins = ["hub.fixtures"]` gives a test module the fixture `hub`.
"""

from __future__ import annotations

from .clients import client_env, run_client, run_lmdiag
from .server import LoopbackHub
from .store import Refused, Repository, Store, User

__all__ = [
    "LoopbackHub",
    "Refused",
    "Repository",
    "Store",
    "User",
    "client_env",
    "run_client",
    "run_lmdiag",
]
