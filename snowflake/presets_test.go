package snowflake

import "testing"

func TestALayoutKnowsThePresetWhoseIDsItHas(t *testing.T) {
	for _, name := range PresetNames() {
		l, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []Layout{l, l.WithPolicy(Policy{})} {
			if l.PresetName() != name || l.Name() != name {
				t.Errorf("%s: got %q and %q", name, l.PresetName(), l.Name())
			}
		}
	}
	l, err := ParseLayout("time:40,worker:10,sequence:12;epoch=1")
	if err != nil {
		t.Fatal(err)
	}
	if l.PresetName() != "" || l.Name() != l.String() {
		t.Errorf("no preset: got %q and %q", l.PresetName(), l.Name())
	}
}
