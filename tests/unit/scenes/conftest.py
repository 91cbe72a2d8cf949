"""The server that misbehaves on order is that of the planners' tests."""

from tests.unit.planners.conftest import server

__all__ = ["server"]
