"""Legal holds, and the one way to delete, which they stand in. Below the store; `eventlog.retention` is the face for people.

targets.py      what a hold lies on; which holds lie on a checkpoint. Pure
reserved.py     the streams that all this is kept in, in a tenant of their own
register.py     the holds in force, by partition
deleting.py     every deletion, on the condition that the register has not changed
refusals.py     deletions that were refused, remembered; remembered.py lists them
placing.py      holds as people place, release and list them
"""
