"""SUM: values that can be added, in any order, from any source."""
