package veil

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/seqsvr/seqsvr/snowflake"
)

var key = bytes.Repeat([]byte{0x5a}, KeySize)

// of is the permutation of so many bits, also of fewer than New allows: all IDs are tried.
func of(t testing.TB, n uint) *Veil {
	t.Helper()
	l, err := snowflake.ParseLayout("time:41,worker:10,sequence:12;epoch=0")
	if err != nil {
		t.Fatal(err)
	}
	v, err := New(l, key)
	if err != nil {
		t.Fatal(err)
	}
	v.bits, v.half = n, (n+1)/2
	return v
}

func TestEveryIDIsHiddenAsAnotherAndShownAgain(t *testing.T) {
	for n := uint(2); n <= 15; n++ {
		v := of(t, n)
		seen := make([]bool, 1<<n)
		for id := snowflake.ID(0); id < 1<<n; id++ {
			hidden, err := v.Hide(id)
			if err != nil || hidden < 0 || hidden >= 1<<n || seen[hidden] {
				t.Fatalf("%d bits: %d is hidden as %d, %v, which is %t taken", n, id, hidden, err, hidden >= 0 && hidden < 1<<n && seen[hidden])
			}
			seen[hidden] = true
			if back, err := v.Show(hidden); err != nil || back != id {
				t.Fatalf("%d bits: %d is shown as %d, %v, want %d", n, hidden, back, err, id)
			}
		}
	}
}

func TestPresetsAreHiddenInTheirOwnRange(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range snowflake.PresetNames() {
		l, err := snowflake.ReadPreset(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := New(l, key)
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			id := snowflake.ID(r.Uint64() >> (64 - l.Bits()))
			hidden, err := v.Hide(id)
			if err != nil || uint64(hidden)>>l.Bits() != 0 || hidden < 0 && !l.ReadOnly() {
				t.Fatalf("%s: %d is hidden as %d, %v", name, id, hidden, err)
			}
			if back, err := v.Show(hidden); err != nil || back != id {
				t.Fatalf("%s: got %d, %v, want %d", name, back, err, id)
			}
		}
		if over := snowflake.ID(1) << l.Bits(); l.Bits() < 63 {
			if _, err := v.Hide(over); !errors.Is(err, ErrRange) {
				t.Errorf("%s: an ID above the layout: %v", name, err)
			}
		}
		if _, err := v.Hide(-1); !l.ReadOnly() && !errors.Is(err, ErrRange) {
			t.Errorf("%s: a negative ID: %v", name, err)
		}
	}
}

// Neighbours in time are what a guesser has. Of each bit of the ID that flips, every bit of
// what is shown must flip half of the time; and what is shown must look uniform. The bounds
// are five standard deviations, of a fixed key and seed.
func TestHiddenIDsTellNothingOfTheirNeighbours(t *testing.T) {
	const n, samples = 63, 4000
	v := of(t, n)
	r := rand.New(rand.NewPCG(3, 4))
	flips, ones := [n][n]int{}, [n]int{}
	for range samples {
		id := snowflake.ID(r.Uint64() >> (64 - n))
		hidden, _ := v.Hide(id)
		for bit := range n {
			ones[bit] += int(hidden >> bit & 1)
			other, _ := v.Hide(id ^ 1<<bit)
			for d := uint64(hidden ^ other); d != 0; d &= d - 1 {
				flips[bit][bits.TrailingZeros64(d)]++
			}
		}
	}
	most := 5 * math.Sqrt(samples) / 2
	for in := range n {
		if math.Abs(float64(ones[in])-samples/2) > most {
			t.Errorf("bit %d is set %d times of %d", in, ones[in], samples)
		}
		for out := range n {
			if math.Abs(float64(flips[in][out])-samples/2) > most {
				t.Errorf("bit %d flips bit %d %d times of %d", in, out, flips[in][out], samples)
			}
		}
	}
}

// IDs that follow each other, as a competitor would take two of: their differences must be
// spread over the whole range, by a chi-squared of 64 classes.
func TestIDsInARowAreSpreadOverTheWholeRange(t *testing.T) {
	const n, samples, classes = 63, 64_000, 64
	v := of(t, n)
	at, gaps := [classes]int{}, [classes]int{}
	before, _ := v.Hide(1<<50 - 1)
	for i := range snowflake.ID(samples) {
		hidden, _ := v.Hide(1<<50 + i)
		at[hidden>>(n-6)]++
		gaps[uint64(hidden-before)&(1<<n-1)>>(n-6)]++
		before = hidden
	}
	for what, counts := range map[string][classes]int{"places": at, "gaps": gaps} {
		chi := 0.0
		for _, c := range counts {
			d := float64(c) - samples/classes
			chi += d * d / (samples / classes)
		}
		// 63 degrees of freedom: mean 63, standard deviation 11.2.
		if chi > 63+5*11.2 || chi < 63-5*11.2 {
			t.Errorf("%s: chi-squared is %.1f, expected about 63", what, chi)
		}
	}
}

// Every later version must show a number that is hidden today. The AES of OpenSSL gave the same values.
func TestWhatWasHiddenOnceIsShownForEver(t *testing.T) {
	for _, row := range []struct {
		bits       uint
		id, hidden snowflake.ID
	}{{63, 1541815603606036480, 7900019259381105715}, {63, 0, 8875510769717517284}, {53, 1, 30881785549760}} {
		got, err := of(t, row.bits).Hide(row.id)
		if err != nil || got != row.hidden {
			t.Errorf("%d of %d bits: got %d, %v, want %d", row.id, row.bits, got, err, row.hidden)
		}
	}
}

func TestKeysAndLayoutsAreChecked(t *testing.T) {
	l, err := snowflake.Preset("twitter")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(l, key[1:]); !errors.Is(err, ErrKey) {
		t.Errorf("a short key: %v", err)
	}
	narrow, err := snowflake.ParseLayout("time:21,worker:4,sequence:6;epoch=0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(narrow, key); !errors.Is(err, ErrRange) {
		t.Errorf("31 bits: %v", err)
	}
	one, _ := New(l, key)
	two, _ := New(l, bytes.Repeat([]byte{0x5b}, KeySize))
	a, _ := one.Hide(7)
	b, _ := two.Hide(7)
	if a == b {
		t.Errorf("two keys hide 7 as %d", a)
	}
}

func BenchmarkHide(b *testing.B) {
	for _, n := range []uint{63, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := of(b, n)
			for i := range snowflake.ID(b.N) {
				if _, err := v.Hide(i); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
