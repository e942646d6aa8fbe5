"""Where lab jobs run. Here: on this machine; another place would be another module with the same functions."""
