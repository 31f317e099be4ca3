"""One file per rival; each defines one `RIVAL`."""
