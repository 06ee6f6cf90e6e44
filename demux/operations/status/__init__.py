"""The status of a root as data, as one page, as metrics, and over HTTP; read by `deltalake`, without Spark."""
