package snowflake

import "fmt"

type named struct{ name, text string }

var presets = []named{
	{"twitter", "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1288834974657"},
	{"regional", "time:42,datacenter:3,worker:6,sequence:12;unit=1ms;epoch=1596364434706"},
	{"regional-local", "time:42,worker:9,sequence:12;unit=1ms;epoch=1596364434706"},
	{"baidu", "time:28,worker:22,sequence:13;unit=1s;epoch=2016-05-20T00:00:00+08:00;overflow=borrow"},
	{"baidu-29", "time:29,worker:21,sequence:13;unit=1s;epoch=2016-09-20T00:00:00+08:00;overflow=borrow"},
	{"leaf", "time:41,worker:10,sequence:12;unit=1ms;epoch=1288834974657;rollback=wait:5ms"},
	{"request", "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1691087910202"},
	{"request-wide", "time:39,worker:12,sequence:12;unit=1ms;epoch=1691087910202"},
	{"sonyflake", "time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z;rollback=borrow"},
	{"discord", "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1420070400000"},
	{"instagram", "time:40,worker:13,sequence:10;unit=1ms;epoch=1314220021721"},
}

// readable are the presets whose IDs have 64 bits where others make them. The IDs that are made here have
// the same fields at the same places, and end when the time needs the sign bit.
var readable = []named{
	{"discord", "time:42,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1420070400000"},
	{"instagram", "time:41,worker:13,sequence:10;unit=1ms;epoch=1314220021721"},
}

// Preset returns a layout by name, with the policy its users know:
//
//	twitter         Twitter's Snowflake
//	regional        three bits of region, for one service in several regions
//	regional-local  the layout of regional's callers when they generate alone
//	baidu           UidGenerator's default; ran out on 2024-11-20
//	baidu-29        UidGenerator with one more bit of time
//	leaf            Leaf's snowflake mode
//	request         Twitter's fields from 2023 on, for IDs of requests
//	request-wide    the same without datacenters and with more workers
//	sonyflake       Sonyflake
//	discord         Discord's, with one bit of time less: until 2084. Its worker is the datacenter
//	                here, and its process the worker
//	instagram       Instagram's, with one bit of time less: until 2046. The logical shard is the worker
//
// It returns ErrUnknownPreset for any other name.
func Preset(name string) (Layout, error) {
	for _, p := range presets {
		if p.name == name {
			return ParseLayout(p.text)
		}
	}
	return Layout{}, fmt.Errorf("preset layout %q: %w", name, ErrUnknownPreset)
}

// ReadPreset returns what Preset does, but discord and instagram with all of their 64 bits: they are
// ReadOnly.
func ReadPreset(name string) (Layout, error) {
	for _, p := range readable {
		if p.name == name {
			return ParseReadable(p.text)
		}
	}
	return Preset(name)
}

// PresetNames returns the names that Preset and ReadPreset know.
func PresetNames() []string { return namesOf(presets) }

func namesOf(all []named) []string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.name
	}
	return names
}

// PresetName is the preset whose IDs are the layout's, whatever their policies; "" if
// there is none.
func (l Layout) PresetName() string {
	for _, name := range PresetNames() {
		made, err := Preset(name)
		read, err2 := ReadPreset(name)
		if plain := l.WithPolicy(Policy{}); err == nil && err2 == nil && (made.WithPolicy(Policy{}) == plain || read.WithPolicy(Policy{}) == plain) {
			return name
		}
	}
	return ""
}

// Name is the preset's name or, where there is none, the layout's text.
func (l Layout) Name() string {
	if name := l.PresetName(); name != "" {
		return name
	}
	return l.String()
}
