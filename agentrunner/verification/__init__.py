"""Finds out what is true about a tree, by running and reading, never by asking a model.

verifier   measures a tree once a round and returns Evidence
proof      examines a tree when completion is asked for: graded proofs, findings, doubts
canaries   whether the tests and programs that decide can still fail
checks     turns a criterion's check into a command or a reading; `check_runner` executes it
claims     which red tests have to turn green, and which were red for another reason
grades     which proof stands for which criterion, and what it is worth
verdict    turns Evidence and claims into a status for each criterion and an end of the run
rooms      clean rooms, in which everything that decides is run
inputs     which changed files decide what the tests say; `differential` builds trees from that
syntax     functions, tests and what they use, in the languages that can be parsed
results    what test tools report, by test name; `counts` reads totals where there are no names
"""
