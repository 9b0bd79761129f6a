// go-redis's ClusterClient while the leader is killed. Arguments: the ports of the nodes, and the command that kills their leader.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func check(is bool, what ...any) {
	if !is {
		panic(fmt.Sprint(what...))
	}
}

// until makes a call until there is a leader that answers it.
func until(call func() error) {
	// Less than the default ClusterStateReloadInterval, with which the client would ask only the killed leader.
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := call()
		if err == nil {
			return
		}
		check(time.Now().Before(deadline), err)
		time.Sleep(20 * time.Millisecond)
	}
}

func main() {
	nodes := []string{}
	for _, port := range strings.Split(os.Args[1], ",") {
		nodes = append(nodes, "127.0.0.1:"+port)
	}
	db := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes, ClusterStateReloadInterval: time.Second})
	for n := range 100 {
		check(db.Set(ctx, fmt.Sprint("key ", n), n, 0).Err() == nil, n)
	}
	masters := 0
	check(db.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { masters++; return nil }) == nil && masters == 1, masters)
	check(exec.Command(os.Args[2]).Run() == nil, os.Args[2])
	for n := range 100 {
		until(func() error {
			value, err := db.Get(ctx, fmt.Sprint("key ", n)).Int()
			check(err != nil || value == n, "key ", n, ": ", value)
			return err
		})
	}
	until(func() error { return db.Set(ctx, "after", "the leader was killed", 0).Err() })
	replies, err := db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "{tag}a", 1, 0)
		pipe.Incr(ctx, "{tag}a")
		return nil
	})
	check(err == nil && replies[1].(*redis.IntCmd).Val() == 2, err)
	check(db.Close() == nil)
	fmt.Printf("go-redis %s: ClusterClient follows the leader\n", redis.Version())
}
