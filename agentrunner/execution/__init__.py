"""What nodes do their work with: workers, planners, credentials, questions, records."""
