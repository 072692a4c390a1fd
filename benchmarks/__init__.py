"""What the store costs, side by side in one run with what a user would otherwise pick and with the bare machinery underneath."""
