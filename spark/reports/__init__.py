"""Reports over an exported namespace: from Parquet to tables, pictures and a page."""
