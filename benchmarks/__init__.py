"""What AgentRunner costs, each figure a ratio against a base measured in the same run."""
