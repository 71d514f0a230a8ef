"""What distributions that favour flat modes buy, and what the paper's samplers do not."""
