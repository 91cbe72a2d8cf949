"""The tools of the nodes: workers, planners, credentials, questions, records."""
