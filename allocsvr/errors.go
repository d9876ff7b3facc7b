package allocsvr

import "errors"

// errTaking: a node is not ready, since nobody has some of the sections that the table gives
// to it. It takes them by itself.
var errTaking = errors.New("sections are being taken")
