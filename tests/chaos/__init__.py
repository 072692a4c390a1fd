"""Days of bad luck in minutes: real processes on a real log, disturbed at random, and every answer held against the log afterwards."""
