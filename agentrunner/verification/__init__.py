"""Finds out what is true about a tree, by running and reading, never by asking a model.

The folders, each of which uses only those below it:

proof        examines a tree when completion is asked for: graded proofs, findings, doubts
inspection   what is missing or too much, found by reading the change against the requirements
canaries     whether the tests and programs that decide can still fail
evidence     measures a tree once a round: checks, commands, what they said, findings
test_changes changes of tests that need no question
rooms        clean rooms, in which everything that decides is run
inputs       which changed files decide what the tests say
syntax       functions, tests and what they use, in the languages that can be parsed
results      what test tools report, by test name; `counts` reads totals where there are no names

The files beside them:

trees, changed_inputs     what is handed over, what changed, by whom, and which changes decide
differential, world       trees that mix old inputs and the new product; `unknown_names` for them
rewritten_data            expected data with a part of the changes that the PRD permits
file_names, subject_words how a text names a file; what tests are about
grades, criterion_status  what a proof is worth; a status for each criterion
verdict                   what is missing for COMPLETE, and an end of the run
"""
