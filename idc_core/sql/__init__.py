"""DuckDB with nothing in its reach; people's queries are answered by a process of its own, within limits."""
