"""A container per sandbox, on any engine that speaks Docker's API."""

from agentrunner.sandboxes.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox"]
