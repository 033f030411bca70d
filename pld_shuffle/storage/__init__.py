"""Files that are written whole or not at all, tables that grow by a row, numbers as text."""
