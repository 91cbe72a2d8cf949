"""Where commands run; knows nothing of tasks."""
