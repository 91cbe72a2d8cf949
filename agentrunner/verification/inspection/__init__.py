"""Reads the work against the requirements, and runs nothing: what is plainly missing or too much.

Each file holds one question, and answers "" or a sentence for the person who is asked:

left_as_it_was    what has to change and is as it was; `only_declared`: made, and used by nothing
still_there       what has to go and is there; `has_to_stay`: what has to stay and is gone
missing_names     names that nobody wrote, or `offered_names` to others; `missing_failures`: what
                  has to fail, and nothing does
lost_files        deleted files that the product still imports; `taken_places`: new ones that
                  tests import in the place of others; `collateral`: deleted or emptied for no
                  reason; `lost_refusals`: errors that nothing raises any more; `loose_code`: code
                  that nothing calls
comments_on_work  work that is nothing but comments, or says of itself that it is not done
both_trees        the product before and after, which they read
"""
