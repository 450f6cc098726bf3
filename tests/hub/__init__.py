"""A Hub on the loopback interface, for tests: real HTTP, repositories in memory, real clients.

`server` has the Hub and the environment of its clients, `boards` writes leaderboards.
`pytest_plugins = ["hub.fixtures"]` gives a test module the fixtures.
"""

from .server import LoopbackHub, client_env

__all__ = ["LoopbackHub", "client_env"]
