package ui

import (
	"fmt"
	"strconv"
	"time"
)

// Int is n with a comma between each three digits: 12,345,678. Identifiers
// should not be shown so, since people copy them: give those as strings.
func Int(n int64) string {
	if n < 0 {
		return "-" + Uint(-uint64(n)) // right for the smallest int64 too
	}
	return Uint(uint64(n))
}

// Uint is Int for unsigned numbers.
func Uint(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	out := make([]byte, 0, len(digits)+len(digits)/3)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// Duration is d in at most two units or three digits, rounded down: 850ns,
// 1.23ms, 45.6s, 2m05s, 3h12m, 4d03h.
func Duration(d time.Duration) string {
	if d < 0 {
		if d == -d { // the smallest Duration has no positive twin
			d++
		}
		return "-" + Duration(-d)
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Microsecond:
		return strconv.FormatInt(int64(d), 10) + "ns"
	case d < time.Millisecond:
		return threeDigits(d, time.Microsecond) + "µs"
	case d < time.Second:
		return threeDigits(d, time.Millisecond) + "ms"
	case d < time.Minute:
		return threeDigits(d, time.Second) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// threeDigits is d in units, 1 <= d/unit < 1000, cut after the third digit.
func threeDigits(d, unit time.Duration) string {
	whole, rest := d/unit, d%unit
	switch {
	case whole >= 100:
		return strconv.FormatInt(int64(whole), 10)
	case whole >= 10:
		return fmt.Sprintf("%d.%d", whole, rest*10/unit)
	default:
		return fmt.Sprintf("%d.%02d", whole, rest*100/unit)
	}
}
