"""Functions of a fitted model: tables, summaries, checks and effects, as people read them."""
