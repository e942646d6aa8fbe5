"""What the user of a command says: who asks, in which workspace, with which paths and reasons."""
