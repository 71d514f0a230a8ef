"""Suites of benchmarks for `steppe`: instances of other papers, published values beside ours."""
