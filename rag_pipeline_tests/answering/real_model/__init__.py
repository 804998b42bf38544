"""A real small model behind llama-cpp-python's server: `make test-llm`."""
