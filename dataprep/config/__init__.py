"""The settings of a job, and the files from which they are read."""
