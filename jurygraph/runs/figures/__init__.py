"""What a run comes to in numbers: what it costs, what became of what was asked, how it stands beside another one."""
