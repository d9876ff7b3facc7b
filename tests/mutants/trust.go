package main

// trustMutants are those of restores, settles, old disks and lies.
var trustMutants = []mutant{}
