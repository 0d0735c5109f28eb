"""Interactive figures that the lessons and the site share; every number in them comes from `reference_impl`."""
