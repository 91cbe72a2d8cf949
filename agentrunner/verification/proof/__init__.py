"""The examination of a tree when completion is asked for: graded proofs, findings and doubts.

proving       all of it, command by command; `examination` one tree and what is confirmed of it
name_proof    commands whose tests have names; `exit_proof` those that only have an exit code
old_inputs    what decides as it was before the run; `unexplained_files` changes nothing explains
carried_tests, moved_back, data_alone, set_up_again  tests, files, data and packages that may change
struck        whether the worker's own test shows the work; `mutation` how much of it tests hold
integrity     what the change exchanged in the test tool's process
"""
