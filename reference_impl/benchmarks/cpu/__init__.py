"""The engine on a CPU beside its bounds and its peers; one section of the table a file."""
