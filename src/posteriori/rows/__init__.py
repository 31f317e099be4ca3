"""READ: turn whatever the user has into blocks of rows."""
