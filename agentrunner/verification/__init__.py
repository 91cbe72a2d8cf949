"""Finds out what is true about a tree, by running and reading, never by asking a model.

The folders, each of which uses only those below it:

proof      examines a tree when completion is asked for: graded proofs, findings, doubts
inspection what is missing or too much, found by reading the change against the requirements
canaries   whether the tests and programs that decide can still fail
rooms      clean rooms, in which everything that decides is run
inputs     which changed files decide what the tests say
syntax     functions, tests and what they use, in the languages that can be parsed
results    what test tools report, by test name; `counts` reads totals where there are no names

The files beside them, in the order in which a round needs them:

target, wanted            the commands that decide, and what was asked for
checks, baseline_checks   a criterion's check as a command or a reading; how it stands before the
                          run; `check_runner` executes it
verifier                  measures a tree once a round, returns Evidence; `measure` runs a command
ignored_builds            what is built before the run
task_set_up               the set-up, in the repository and in rooms
outcomes, claims          what a run says; which red tests must turn green, which were red before
trees, changed_inputs     what is handed over, what changed, by whom, and which changes decide
differential, world       trees that mix old inputs and the new product; `unknown_names` for them
adapted_tests             changes of tests that need no question; so do `follow_ups`, `moves`,
                          `removed_tests`, `rewritten_data`
file_names, subject_words how a text names a file; what tests are about
grades, criterion_status  what a proof is worth; a status for each criterion
verdict                   what is missing for COMPLETE, and an end of the run
findings                  what a person settles
"""
