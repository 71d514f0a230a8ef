"""Many transitions of many chains: plan, warm-up, loop, storage."""
