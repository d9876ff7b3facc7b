module github.com/seqsvr/seqsvr/tests/e2e

go 1.26.0

replace github.com/seqsvr/seqsvr => ../..

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/seqsvr/seqsvr v0.0.0-00010101000000-000000000000
	github.com/sony/sonyflake v1.2.0
)

require (
	github.com/hanwen/go-fuse/v2 v2.9.0
	golang.org/x/sys v0.49.0 // indirect
)
