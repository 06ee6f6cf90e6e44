"""Who learns of a command's progress: the terminal, OpenTelemetry, OpenLineage; what each of them is given."""
