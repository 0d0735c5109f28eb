"""The commands of `python -m reference_impl`, one file each: it parses options, calls the library and prints."""
