1..4
ok 1 - adds
ok 2
# Subtest: inner
    1..2
    ok 1 - one
    ok 2 - two
ok 3 - inner
ok 4 # skip later
