// Checks whether the histories of a cluster are linearizable, key by key, with porcupine.
//
// Usage: check FILE..    Ends with 1 if one is not, and prints the operations on that key; with 2 if it cannot be read, or is empty.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// A key that takes longer is not decided, and that is a failure.
const patience = 2 * time.Minute

// state is the value of one key.
type state struct {
	present bool
	value   int64
}

// model says what each command does to a key. An operation of unknown outcome may reply anything.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, input, known any) (bool, any) {
		now, op := before.(state), input.(event)
		replied := func(number int64) bool { return !known.(bool) || number == *op.Result }
		switch op.Op {
		case "set":
			return true, state{true, *op.Value}
		case "incr":
			next := state{true, now.value + 1}
			return replied(next.value), next
		case "del":
			removed := int64(0)
			if now.present {
				removed = 1
			}
			return replied(removed), state{}
		}
		if op.Result == nil {
			return !now.present, now
		}
		return now.present && now.value == *op.Result, now
	},
}

// check says whether a history is linearizable, and prints what was found.
func check(name string, history io.Reader, out io.Writer) (bool, error) {
	keys, err := read(history)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if len(keys) == 0 {
		return false, fmt.Errorf("%s: expected operations, found none", name)
	}
	names, operations, unknown := []string{}, 0, 0
	for key, ops := range keys {
		names = append(names, key)
		operations += len(ops)
		for _, op := range ops {
			if !op.Output.(bool) {
				unknown++
			}
		}
	}
	sort.Strings(names)
	for _, key := range names {
		if found := porcupine.CheckOperationsTimeout(model, keys[key], patience); found != porcupine.Ok {
			fmt.Fprintf(out, "%s: NOT LINEARIZABLE (%s): %q\n%s", name, found, key, show(keys[key]))
			return false, nil
		}
	}
	fmt.Fprintf(out, "%s: linearizable: %d operations on %d keys, %d of unknown outcome\n", name, operations, len(keys), unknown)
	return true, nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: check FILE..")
		os.Exit(2)
	}
	code := 0
	for _, name := range os.Args[1:] {
		file, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		good, err := check(name, file, os.Stdout)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if !good {
			code = 1
		}
		file.Close()
	}
	os.Exit(code)
}
