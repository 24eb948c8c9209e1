"""What senders say about GPU memory, and what it means for pods: read, judged, attributed."""
