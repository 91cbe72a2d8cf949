"""Measures a tree: what has to hold, the commands that decide it, and what they said.

verifier                  measures a tree once a round, returns Evidence with its `findings`
target, wanted, listing   the commands that decide, what was asked for, and the inputs of the proof
checks, check_runner      a criterion's check as a command or a reading, and its execution
baseline_checks           how checks stand before the run, and which are still to be written
ignored_builds            what was built before the run; `outside_work` of people beside it
task_set_up               the set-up, in the repository and in rooms
measure, outcomes         runs a command, and what its run says; `claims`: which red tests must turn
                          green
findings                  what a person settles
"""
