"""Other job queues that need no server, each behind the interface of ``rival``, one file each."""
