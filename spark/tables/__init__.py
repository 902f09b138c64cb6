"""An image and its edits as tables: for Spark, and as Parquet files."""
