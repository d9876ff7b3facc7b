package allocsvr

import "errors"

// errTaking: a node is not ready, since some of the sections that the table gives to it have no
// owner. It takes them by itself.
var errTaking = errors.New("sections are being taken")
