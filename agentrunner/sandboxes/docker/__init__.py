"""A container per box, on any engine that speaks Docker's API."""

from agentrunner.sandboxes.docker.box import DockerSandbox

__all__ = ["DockerSandbox"]
