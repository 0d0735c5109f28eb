"""An HTTP server with the interface of the OpenAI API."""
