"""Clean rooms: fresh copies of a tree, with their own git and packages, in which commands decide.

room              makes clean rooms; `room_git` makes their `.git`, `sealed` keeps ignored files;
                  `copies` copies folders
decision_sandbox  runs a command that decides; `byte_code` of what only compiles;
                  `build_cache` of what was compiled
start_up          whether a command could decide anything; `wrong_commands`: whether any work could
                  turn it green, by the `complaints` of tools and what is the project's `own_code`
lacking_packages  what is not installed; `left_out`, `kept_copies`: what rooms share
set_up            runs the set-up command; `registries` finds the hosts it fetches packages from
"""
