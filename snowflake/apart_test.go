package snowflake

import "testing"

// tiny are layouts of few bits, so that all their IDs can be written down.
var tiny = []string{
	"time:2,datacenter:2,worker:1,sequence:1", "time:1,datacenter:2,worker:2,sequence:1", "datacenter:1,time:2,worker:1,sequence:1",
	"time:2,worker:1,datacenter:2,sequence:1", "time:3,worker:2,sequence:1", "time:1,worker:1,datacenter:3,sequence:1",
}

// ids are all IDs of a datacenter under a layout.
func ids(t *testing.T, l Layout, dc Datacenter) map[ID]bool {
	t.Helper()
	all := map[ID]bool{}
	if l.HasDatacenter() && dc > l.MaxDatacenter() {
		return all
	}
	if !l.HasDatacenter() {
		dc = 0
	}
	for tick := range l.MaxTick() + 1 {
		for worker := range l.MaxWorker() + 1 {
			for sequence := range l.MaxSequence() + 1 {
				id, err := l.Compose(Parts{tick, dc, worker, sequence})
				if err != nil {
					t.Fatal(err)
				}
				all[id] = true
			}
		}
	}
	return all
}

func TestDatacentersAreApartExactlyIfNoIDIsOfBoth(t *testing.T) {
	compared := map[bool]int{}
	for _, one := range tiny {
		for _, two := range tiny {
			a, errA := ParseLayout(one + ";epoch=0")
			b, errB := ParseLayout(two + ";epoch=5")
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			for dcA := range Datacenter(9) {
				for dcB := range Datacenter(9) {
					apart := true
					theirs := ids(t, b, dcB)
					for id := range ids(t, a, dcA) {
						apart = apart && !theirs[id]
					}
					compared[apart]++
					if got := a.Apart(dcA, b, dcB); got != apart {
						t.Errorf("%s of %d and %s of %d: got %v, want %v", one, dcA, two, dcB, got, apart)
					}
				}
			}
		}
	}
	if compared[true] == 0 || compared[false] == 0 {
		t.Errorf("compared %v, want both", compared)
	}
}
