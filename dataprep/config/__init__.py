"""The settings of a job, and the files that they are read from."""
