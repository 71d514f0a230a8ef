"""Networks of binary weights on tables: do entropic samplers generalise better?"""
