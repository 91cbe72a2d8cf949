"""What is true about a tree, found out by running and reading, never by asking.

verifier   measures a tree once a round: Evidence
proof      examines a tree when completion is asked for: graded proofs, findings, doubts
canaries   whether tests and programs that decide still can fail
checks     a criterion's check as something to execute or read; `check_runner` does it
claims     which red tests have to turn, which were red for another reason
grades     which proof stands for which criterion, and what it is worth
verdict    Evidence and claims to a status for each criterion, and to an end of the run
rooms      clean rooms, in which all that decides is run
inputs     what of a change decides what the tests say; `differential` builds trees from that
syntax     functions, tests and what they use, in the languages that are read
results    what test tools report, by name; `counts` where they tell totals only
"""
