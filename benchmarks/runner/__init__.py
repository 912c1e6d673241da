"""How contestants are timed, judged and reported on."""
