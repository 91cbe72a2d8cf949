"""The planner, which plans, decides and judges: its clients, and the code that asks them."""
