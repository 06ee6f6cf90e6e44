"""What every stage uses: words, settings, tables, schemas. Imports no stage."""
