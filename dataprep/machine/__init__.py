"""This machine: its processors, processes, and the settings of a process."""
