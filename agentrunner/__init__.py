"""AgentRunner: a PRD and a repository in, a COMPLETE that is backed by evidence out."""

__version__ = "0.1.0"
