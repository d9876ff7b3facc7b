package seq_test

import (
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

func ExampleMapping_Space() {
	m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 4096}, seq.Space{Name: "room", Sections: 64})
	if err != nil {
		panic(err)
	}
	room, err := m.Space("room")
	fmt.Println(room.Sections, err)
	_, err = m.Space("group")
	fmt.Println(err)
	// Output:
	// 64 <nil>
	// unknown space: "group", expected one of user, room
}

func ExampleSpace_SectionOf() {
	s := seq.Space{Name: "user", Sections: 4096}
	fmt.Println(s.SectionOf(42) == s.SectionOf(43))  // of one block of 64
	fmt.Println(s.SectionOf(42) == s.SectionOf(106)) // of two
	// Output:
	// true
	// false
}
