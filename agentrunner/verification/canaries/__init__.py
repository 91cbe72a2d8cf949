"""Makes claimed tests and programs fail on purpose; each must be reported as failed.

claimed_tests   canaries of tests with names, by syntax or by words; `canary_trees` holds
                them, and what they are made of
script_canary   programs that decide by exit code; `own_assertions`, `table_rows` what they check
fixture_canary  a claimed test with another text where the work reads what it compares with;
                `helper_canary` without the function that it asks with
"""
