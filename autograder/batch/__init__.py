"""A whole class: many submissions in parallel, resumed after a stop, exported."""
