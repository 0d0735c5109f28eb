"""The engine on a CPU beside its bounds and its peers. Each file measures one section of the report."""
