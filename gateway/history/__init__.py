"""What was done here: each statement that has ended, as a row of an SQLite file that statements and REST calls can ask."""
