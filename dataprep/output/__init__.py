"""The files of a finished data set: their keys, and their content besides the shards."""
