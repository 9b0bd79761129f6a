package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// verdict checks a recorded history.
func verdict(t *testing.T, name string) (bool, string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var said strings.Builder
	good, err := check(name, file, &said)
	if err != nil {
		t.Fatal(err)
	}
	return good, said.String()
}

func recorded(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("expected %s in testdata, found %v %v", pattern, names, err)
	}
	return names
}

// Catches a check that refuses what a correct cluster does: unknown outcomes that have their effect at once, late or never.
func TestGoodHistoriesAreAccepted(t *testing.T) {
	for _, name := range recorded(t, "good-*.jsonl") {
		if good, said := verdict(t, name); !good {
			t.Error(said)
		}
	}
}

// Catches a check that accepts anything: stale reads, lost writes, lost updates, values that nobody wrote.
func TestBadHistoriesAreRefused(t *testing.T) {
	for _, name := range recorded(t, "bad-*.jsonl") {
		if good, said := verdict(t, name); good {
			t.Errorf("%s: expected a refusal, found: %s", name, said)
		} else if !strings.Contains(said, "NOT LINEARIZABLE (Illegal)") {
			t.Errorf("%s: expected a decision, found: %s", name, said)
		}
	}
}

// Catches a file that was cut off, or is of something else, and passes for a good history.
func TestWhatIsNoHistoryIsAnError(t *testing.T) {
	for _, text := range []string{
		"",
		"{",
		`{"client":0,"op":"get","key":"","call":1,"return":2}`,
		`{"client":0,"op":"append","key":"k","call":1,"return":2}`,
		`{"client":0,"op":"set","key":"k","call":1,"return":2}`,
		`{"client":0,"op":"incr","key":"k","call":1,"return":2}`,
		`{"client":0,"op":"del","key":"k","call":2,"return":1,"result":0}`,
	} {
		if good, err := check("text", strings.NewReader(text), &strings.Builder{}); err == nil {
			t.Errorf("%q: expected an error, found %v", text, good)
		}
	}
}
