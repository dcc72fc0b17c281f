"""Documents that could do harm are read in a process of their own, which can be ended; a thread cannot.

`deciding` tells which, `reading` is what sources use, `process` begins and ends the process, `child` is what runs in
it, `passing` is what travels between the two.
"""
