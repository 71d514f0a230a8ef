"""The paper's experiments as published and soundly: what is sampled, how it is judged and drawn."""
