"""The planner: who plans, decides and assesses, and how it is asked."""
