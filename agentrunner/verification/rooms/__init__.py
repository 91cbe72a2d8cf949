"""Clean rooms: fresh copies of a tree, with their own git and packages, in which commands decide.

room              one clean room; `room_git` its `.git`, `sealed` what git ignores as it was before
decision_sandbox  a command that decides, run there; `start_up` whether it came to decide anything
set_up            the set-up command; `registries` the hosts it fetches packages from
"""
