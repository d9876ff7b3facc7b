// Package migration tries the table "Coming from" of docs/ids.md against a real cluster: each
// row's commands and requests, and what must be in their answers. It has tests only.
package migration
