"""The paper's four bits: who spends more time in flat modes, when every law is known exactly."""
