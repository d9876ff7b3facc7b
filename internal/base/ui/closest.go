package ui

import "strings"

// Closest returns the word of words that word most likely stands for: it differs in few letters, or begins
// with word. It returns "" if no word is near.
func Closest(word string, words []string) string {
	best, least := "", 1+max(len(word)/3, 1)
	for _, w := range words {
		switch d := distance(strings.ToLower(word), strings.ToLower(w)); {
		case d < least:
			best, least = w, d
		case best == "" && len(word) > 1 && strings.HasPrefix(w, word):
			best = w
		}
	}
	return best
}

// distance counts the letters to put in, leave out, change, or swap with the next one, to make b of a.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		now[0] = i + 1
		for j := range len(b) {
			changed := last[j]
			if a[i] != b[j] {
				changed++
			}
			now[j+1] = min(changed, last[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				now[j+1] = min(now[j+1], before[j-1]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
