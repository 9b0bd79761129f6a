// Puts into a cluster of mini-engine or of etcd, and measures: the program that `run` beside it starts.
//
// Usage:
//
//	bench puts KIND NODE,NODE,NODE CLIENTS SECONDS BYTES    prints: KIND CLIENTS puts a second, p50 and p99 in ms, puts that failed
//	bench leader KIND NODE,NODE,NODE                        prints the leader's address, once there is one
//	bench change KIND NODE,NODE,NODE LEADER PID             kills the leader's process, prints the ms until another node has taken a put
package main

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Keys that are written again and again.
const keys = 1_000_000

func main() {
	if len(os.Args) < 4 || kinds[os.Args[2]].cluster == nil {
		fail("expected puts, leader or change, then mini-engine or etcd, then the nodes; found ", os.Args[1:])
	}
	command, name, nodes, rest := os.Args[1], os.Args[2], strings.Split(os.Args[3], ","), os.Args[4:]
	switch {
	case command == "puts" && len(rest) == 3:
		puts(name, nodes, number(rest[0]), time.Duration(number(rest[1]))*time.Second, number(rest[2]))
	case command == "leader" && len(rest) == 0:
		fmt.Println(leader(name, nodes))
	case command == "change" && len(rest) == 2:
		change(name, nodes, rest[0], number(rest[1]))
	default:
		fail("unexpected arguments: ", os.Args[1:])
	}
}

func fail(said ...any) {
	fmt.Fprintln(os.Stderr, fmt.Sprint(said...))
	os.Exit(2)
}

func number(text string) int {
	found, err := strconv.Atoi(text)
	if err != nil || found <= 0 {
		fail("expected a number above zero, found ", text)
	}
	return found
}

func key(random *rand.Rand) string {
	return fmt.Sprintf("key %08d", random.Intn(keys))
}

// puts has so many clients put, each waiting for its reply before the next.
func puts(name string, nodes []string, clients int, length time.Duration, bytes int) {
	db, err := kinds[name].cluster(nodes, clients)
	if err != nil {
		fail(name, ": ", err)
	}
	defer db.close()
	taken, failed := make([][]time.Duration, clients), make([]int, clients)
	// Connections are made before the clock starts.
	begin := time.Now().Add(time.Second)
	var all sync.WaitGroup
	for client := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			random := rand.New(rand.NewSource(int64(client)))
			for {
				value := make([]byte, bytes)
				random.Read(value)
				called := time.Now()
				err := db.put(context.Background(), key(random), string(value))
				switch now := time.Now(); {
				case now.Sub(begin) > length:
					return
				case now.Before(begin):
				case err != nil:
					failed[client]++
				default:
					taken[client] = append(taken[client], now.Sub(called))
				}
			}
		}()
	}
	all.Wait()
	every := slices.Concat(taken...)
	slices.Sort(every)
	if len(every) == 0 {
		fail(name, ": no put succeeded")
	}
	at := func(part float64) float64 {
		return float64(every[int(float64(len(every)-1)*part)].Microseconds()) / 1000
	}
	lost := 0
	for _, count := range failed {
		lost += count
	}
	fmt.Printf("%s %d %.0f %.2f %.2f %d\n", name, clients, float64(len(every))/length.Seconds(), at(0.5), at(0.99), lost)
}

// leader waits for one.
func leader(name string, nodes []string) string {
	deadline, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		found, err := kinds[name].leader(deadline, nodes)
		if err == nil {
			return found
		}
		if deadline.Err() != nil {
			fail(name, ": no leader: ", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// change kills the leader, and puts into each other node anew every 10 ms, until one has acknowledged a put that was sent after the kill.
func change(name string, nodes []string, leader string, process int) {
	others := []store{}
	for _, node := range nodes {
		if node != leader {
			db, err := kinds[name].node(node)
			if err != nil {
				fail(name, ": ", err)
			}
			defer db.close()
			// So that it is connected; a follower may refuse it.
			db.put(context.Background(), "before", "")
			others = append(others, db)
		}
	}
	if err := syscall.Kill(process, syscall.SIGKILL); err != nil {
		fail("process ", process, ": ", err)
	}
	killed := time.Now()
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan time.Duration, 1)
	for limit.Err() == nil {
		for _, db := range others {
			go func() {
				once, cancel := context.WithTimeout(limit, 2*time.Second)
				defer cancel()
				if db.put(once, "after", "") == nil {
					select {
					case done <- time.Since(killed):
					default:
					}
				}
			}()
		}
		select {
		case length := <-done:
			fmt.Println(length.Milliseconds())
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	fail(name, ": no node has taken a put for a minute")
}
