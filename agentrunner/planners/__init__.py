"""The meta-agent: who plans, decides and assesses, and how it is asked."""
