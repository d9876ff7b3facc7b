package console

// Drill is a drill as it runs. The JSON names are what the page reads.
type Drill struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Wanted  string  `json:"wanted"` // beside neither duplicates nor regressions
	Phase   string  `json:"phase"`  // starting, load, fault, settling or over
	Seconds float64 `json:"seconds"`

	Calls     uint64   `json:"calls"`
	Errors    uint64   `json:"errors"`
	LongestMS float64  `json:"longest_ms"`
	FaultMS   float64  `json:"fault_ms"` // after the load began; -1 before the fault
	SliceMS   float64  `json:"slice_ms"`
	Slices    []Slice  `json:"slices"`
	Timeline  []Moment `json:"timeline"`
	Verdict   *Verdict `json:"verdict"` // null until it is over
}

// Slice is what ended in one piece of time, the first with the beginning of the load.
type Slice struct {
	Answers   int     `json:"answers"`
	Errors    int     `json:"errors"`
	LongestMS float64 `json:"longest_ms"`
}

// Moment is one line of the timeline.
type Moment struct {
	MS      float64 `json:"ms"` // after the first fault
	Event   string  `json:"event"`
	Subject string  `json:"subject"`
	Detail  string  `json:"detail"`
}

// Verdict is what it came to.
type Verdict struct {
	Kept     bool     `json:"kept"` // all promises were
	Words    string   `json:"words"`
	Requests int      `json:"requests"`
	Errors   int      `json:"errors"`
	PauseMS  float64  `json:"max_pause_ms"`
	TargetMS float64  `json:"target_ms"` // zero without a target
	Twice    uint64   `json:"duplicates"`
	Lower    int      `json:"regressions"`
	Gaps     uint64   `json:"gaps"`
	Reasons  []string `json:"reasons"` // of errors, and examples of broken promises
}
