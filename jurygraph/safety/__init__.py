"""What a response, and a secret, must not be able to do."""
