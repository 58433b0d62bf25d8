"""What every room uses: where the course's files are, how numbers are written, what GPUs can do."""
