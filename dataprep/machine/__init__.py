"""Processors and processes of this machine, and settings that belong to a whole process."""
