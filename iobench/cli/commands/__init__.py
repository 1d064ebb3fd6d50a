"""The commands of ``iobench``, with a module for each command or pair of commands.

Imports that take long are inside the commands, so that ``iobench --help`` stays fast.
"""
