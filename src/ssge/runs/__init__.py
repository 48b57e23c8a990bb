"""One run, from what a user asks for to the files it leaves: the plan below both the command line and Python."""
