"""`python -m agentrunner.gateway`, with an order on stdin."""

from agentrunner.gateway.main import main

main()
