"""Examines a tree when completion is asked for; adds graded proofs, findings and doubts.

proving       the whole examination, command by command; `examination` runs commands on its trees
name_proof    commands whose tests have names; `exit_proof` those that only have an exit code
old_inputs    with inputs as they were before the run; `unexplained_files`: changes nothing explains
carried_tests, moved_back, data_alone, set_up_again  tests, files, data and packages that may change
struck        whether the worker's own test shows the work; `mutation` how much of it tests cover
named_work    whether tests ask what the requirements name; `without_work`: trees without the work
integrity     what the change replaced in the test tool's process
"""
