// Package idbench holds the generator of package snowflake against the ID libraries that
// people use today: the speed of all of them in one run, and that they read each other's
// IDs where the layout is the same.
//
//	go test -run '^$' -bench . -benchtime 1s -count 6 ./idbench
//
// github.com/bwmarrin/snowflake and github.com/sony/sonyflake wait for the next tick when
// one is used up, and have no other way: 4,096 IDs a millisecond and 256 in 10 ms bound
// them, which is 244 ns and 39 µs an ID. Package snowflake under the policy `wait` is
// bound by the same and stands beside them; under `borrow` it is not.
package idbench
