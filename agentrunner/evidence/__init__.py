"""What is true about a tree, found out by running and reading, never by asking.

checks    a criterion's check as something to execute or read
counts    how many tests a runner's output says there were
steering  which paths are tests, and which steer the test tool
outcomes  what a run of a check or of the test command says
gather    run all of it on one tree: Evidence
guard     do the old tests pass on the new code
verdict   Evidence and claims to a status for each criterion, and to an end of the run
"""
