"""The demo: an agent's turns, a race, a killed process, and what a new process finds. `narration.run_demo` runs it."""
