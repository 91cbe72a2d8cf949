"""Measures a tree: what has to hold, the commands that decide it, and what they said.

verifier                  measures a tree once a round, returns Evidence with its `findings`
target, wanted, listing   the commands that decide, what was asked for, and the inputs of the proof,
                          with what `linked_inputs` lead to
checks, check_runner      a criterion's check as a command or a reading, and its execution; `regex`
                          searches in bounded time
baseline_checks           how checks stand before the run; `absent_tests`: what is still to be
                          written
delivered_tree            what is handed over; `ignored_builds`, `outside_work` of people beside it
task_set_up               the set-up, in the repository and in rooms
measure, outcomes         runs a command, and what its run says; `claims`: which red tests must turn
                          green; `stages`: whether anything but tests can be red
findings                  what a person settles
"""
