// Histories: a line of JSON for each operation, as mini-engine/program/tests/program/cluster/history.rs writes them.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"

	"github.com/anishathalye/porcupine"
)

// event is an operation on one key, whose values are numbers. Times are nanoseconds.
type event struct {
	Client int    `json:"client"`
	Op     string `json:"op"`
	Key    string `json:"key"`
	// What SET stores.
	Value *int64 `json:"value,omitempty"`
	Call  int64  `json:"call"`
	// Absent where the outcome is unknown: the operation may have had its effect, may have it later, or never.
	Return *int64 `json:"return,omitempty"`
	// What GET found, or what INCR and DEL replied.
	Result *int64 `json:"result,omitempty"`
}

func (e event) check() error {
	known := e.Return != nil
	switch {
	case e.Key == "":
		return fmt.Errorf("expected a key")
	case known && *e.Return < e.Call:
		return fmt.Errorf("expected a return after the call at %d, found %d", e.Call, *e.Return)
	case (e.Op == "set") != (e.Value != nil):
		return fmt.Errorf("expected a value of set alone")
	}
	switch e.Op {
	case "get":
		return nil
	case "set":
		return nil
	case "incr", "del":
		if known != (e.Result != nil) {
			return fmt.Errorf("expected a result where the outcome is known")
		}
		return nil
	}
	return fmt.Errorf("expected get, set, incr or del, found %q", e.Op)
}

// read returns the operations of each key.
func read(from io.Reader) (map[string][]porcupine.Operation, error) {
	keys := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		var found event
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if err := found.check(); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		returned := int64(math.MaxInt64)
		if found.Return != nil {
			returned = *found.Return
		} else if found.Op == "get" {
			// It has no effect, and nobody saw what it found.
			continue
		}
		keys[found.Key] = append(keys[found.Key], porcupine.Operation{
			ClientId: found.Client, Input: found, Output: found.Return != nil, Call: found.Call, Return: returned,
		})
	}
	return keys, lines.Err()
}

// show describes the operations of a key in the order in which they were called.
func show(operations []porcupine.Operation) string {
	sort.Slice(operations, func(a, b int) bool { return operations[a].Call < operations[b].Call })
	text := ""
	for _, operation := range operations {
		line, _ := json.Marshal(operation.Input)
		text += string(line) + "\n"
	}
	return text
}
