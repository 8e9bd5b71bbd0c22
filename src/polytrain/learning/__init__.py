"""Learning a train: losses, starts, core problems and their solvers, sweeps, and the engines that hold the rows."""
