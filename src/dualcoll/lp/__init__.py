"""The solver boundary: linear programs on HiGHS. Nothing else imports highspy."""
