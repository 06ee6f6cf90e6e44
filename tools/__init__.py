"""What developers run beside the product: setting up, and real servers for the tests, the demo and the benchmark."""
