"""The files of which a finished data set consists."""
