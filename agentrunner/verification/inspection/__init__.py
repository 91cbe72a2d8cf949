"""Reads the work against the requirements, and runs nothing: what is plainly missing or too much.

Each file holds one question, and answers "" or a sentence for the person who is asked:

left_as_it_was    what has to change or go and is as it was
has_to_stay       what has to stay and is gone, such as a name that is offered to others
missing_names     names that nobody wrote; `missing_failures`: what
                  has to fail, and nothing does; errors that are only declared
lost_files        deleted files that the product still imports, and new ones that tests import in
                  the place of others; `collateral`: deleted or emptied for no
                  reason, and code that nothing calls
beside_the_task   what code and data of which no word speaks lost; `weaker_tests`: tests that ask
                  for less
lost_refusals     errors that nothing raises any more, by functions of both trees
                  (`same_functions`); `restored_lines` puts them back, for tests to be asked
comments_on_work  work that is nothing but comments, or says of itself that it is not done
both_trees        the product before and after, which they read
"""
