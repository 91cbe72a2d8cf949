"""Clean rooms: fresh copies of a tree, with their own git and packages, in which commands decide.

room              makes clean rooms; `room_git` makes their `.git`, `sealed` keeps ignored files
decision_sandbox  runs a command that decides; `start_up` says whether it could decide anything,
                  `misused_tools` whether a test tool says that it was called wrongly
lacking_packages  what is not installed; `unfetched` what tools could not fetch, in their words;
                  `lacking_conditions` what a sandbox does not give;
                  `editable`, `left_out`, `kept_copies`: what rooms share
set_up            runs the set-up command; `registries` finds the hosts it fetches packages from
"""
