"""What is registered with torch, and called by it."""
