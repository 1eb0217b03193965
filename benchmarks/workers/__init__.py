"""What worker pools add to the time of a request, and to each message and step."""
