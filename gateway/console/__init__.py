"""The web page of the gateway: its files, who has signed in to it, and the calls that it makes."""
