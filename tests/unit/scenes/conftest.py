"""The server that misbehaves on order is that of the planners' tests."""

from tests.kit.fault_server import server

__all__ = ["server"]
