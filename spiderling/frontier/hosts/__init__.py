"""What is known of a host, and of the URL at the head of its queue."""
