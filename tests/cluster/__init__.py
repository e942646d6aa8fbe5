"""Jobs on the nodes of a Ray cluster; collected only where Ray is installed."""
