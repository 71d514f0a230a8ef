"""Run directories: what is written, in which format, and how it is known again."""
