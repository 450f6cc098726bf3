"""What is sent to the Hub, and what is read from it; each module says what it does."""
