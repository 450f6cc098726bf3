"""The leaderboard: requests, the runs that it makes of them, and a site of these runs."""
