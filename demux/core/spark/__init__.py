"""What the stages ask of a Spark session beyond DataFrames, classic or over Spark Connect."""
