"""The commands of ``dataprep``: options in, one call of the library, its answer in words."""
