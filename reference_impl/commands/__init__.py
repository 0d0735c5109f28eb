"""The commands of `python -m reference_impl`: one file each, options in, text out."""
