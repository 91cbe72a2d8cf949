"""The sandbox kind `docker`: containers on any engine that implements Docker's API."""

from agentrunner.sandboxes.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox"]
