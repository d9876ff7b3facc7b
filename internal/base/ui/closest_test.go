package ui

import "testing"

func TestTheClosestWordIsTheOneThatWasMeant(t *testing.T) {
	verbs := []string{"next", "namespace", "status", "store", "drain", "undrain", "route", "drill"}
	for word, want := range map[string]string{
		"nxt": "next", "stauts": "status", "Status": "status", "stat": "status", "dril": "drill", "undran": "undrain",
		"names": "namespace", "x": "", "destroy": "", "": "", "s": "",
	} {
		if got := Closest(word, verbs); got != want {
			t.Errorf("Closest(%q) = %q, want %q", word, got, want)
		}
	}
}
