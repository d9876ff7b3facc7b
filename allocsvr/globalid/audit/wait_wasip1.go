package audit

// noWait is nothing where there are no pipes: the simulator.
const noWait = 0
