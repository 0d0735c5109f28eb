"""Where do weights and tokens come from? Files and folders read, checked and written."""
