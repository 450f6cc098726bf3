"""A Hub on the loopback interface, for tests: real HTTP, repositories in memory, real clients.

`store` keeps repositories, `server` has the endpoints, `clients` sets up a client that knows no
other Hub, `boards` builds leaderboards.
`pytest_plugins = ["hub.fixtures"]` gives a test module the fixtures.
"""

from .clients import client_env, run_client
from .server import LoopbackHub

__all__ = ["LoopbackHub", "client_env", "run_client"]
