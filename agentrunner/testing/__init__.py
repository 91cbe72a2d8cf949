"""What adapters are held to: `sandboxes`, `workers` and `planners` are suites to run on your own.

Each returns a list of `CheckResult`; a suite is passed where none has the status "failed".
"""
