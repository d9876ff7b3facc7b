package ui

import "errors"

// ErrFormat is an output format that does not exist, from ParseFormat and Print.
var ErrFormat = errors.New("unknown output format")
