"""The paper's four bits: who spends more time in flat modes, when every distribution is known exactly."""
