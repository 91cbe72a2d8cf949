"""`python -m agentrunner`, the same as the command `agentrunner`."""

from agentrunner.cli import main

if __name__ == "__main__":
    main()
