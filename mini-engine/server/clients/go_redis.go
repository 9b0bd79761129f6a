// go-redis: the calls of calls.json, and what programs do with the library. Arguments: the port and calls.json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func check(is bool, what ...any) {
	if !is {
		panic(fmt.Sprint(what...))
	}
}

func agrees(reply, expected any) bool {
	switch expected := expected.(type) {
	case []any:
		parts, ok := reply.([]any)
		if !ok || len(parts) != len(expected) {
			return false
		}
		for n := range parts {
			if !agrees(parts[n], expected[n]) {
				return false
			}
		}
		return true
	case float64:
		return reply == int64(expected)
	case map[string]any:
		if text, ok := expected["error"]; ok {
			err, ok := reply.(error)
			return ok && strings.HasPrefix(err.Error(), text.(string))
		}
		if text, ok := expected["contains"]; ok {
			return strings.Contains(reply.(string), text.(string))
		}
		if _, ok := expected["any"]; ok {
			return true
		}
		number, ok := reply.(int64)
		return ok && expected["from"].(float64) <= float64(number) && float64(number) <= expected["to"].(float64)
	}
	return reflect.DeepEqual(reply, expected)
}

func runCalls(db *redis.Client, file string) int {
	text, err := os.ReadFile(file)
	check(err == nil, err)
	var calls [][2]any
	check(json.Unmarshal(text, &calls) == nil, "no calls in ", file)
	one := db.Conn()
	defer one.Close()
	for _, call := range calls {
		reply, err := one.Do(ctx, call[0].([]any)...).Result()
		if err != nil && err != redis.Nil {
			reply = err
		}
		check(agrees(reply, call[1]), call[0], ": expected ", call[1], ", found ", reply)
	}
	return len(calls)
}

func use(db *redis.Client) {
	check(db.FlushAll(ctx).Err() == nil)
	check(db.SetNX(ctx, "k", "v", 1000*time.Second).Val() && !db.SetNX(ctx, "k", "w", 0).Val())
	old := db.SetArgs(ctx, "k", "w", redis.SetArgs{Get: true, KeepTTL: true}).Val()
	check(old == "v" && db.TTL(ctx, "k").Val() > 900*time.Second && db.ExpireGT(ctx, "k", 2000*time.Second).Val())
	check(db.GetEx(ctx, "k", time.Hour).Val() == "w" && db.Persist(ctx, "k").Val() && db.TTL(ctx, "k").Val() == -1)
	for n := range 300 {
		check(db.Set(ctx, fmt.Sprint("scan:", n), n, time.Hour).Err() == nil)
	}
	seen, keys := map[string]bool{}, db.Scan(ctx, 0, "scan:*", 50).Iterator()
	for keys.Next(ctx) {
		seen[keys.Val()] = true
	}
	check(keys.Err() == nil && len(seen) == 300, keys.Err(), len(seen))
	replies, err := db.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Incr(ctx, "n")
		pipe.Set(ctx, "o", "p", 0)
		pipe.Incr(ctx, "n")
		return nil
	})
	check(err == nil && replies[2].(*redis.IntCmd).Val() == 2, err)
	check(db.Copy(ctx, "k", "l", 0, false).Val() == 1 && db.Rename(ctx, "l", "m").Val() == "OK")
	check(len(db.SlowLogGet(ctx, 5).Val()) == 5 && len(db.ConfigGet(ctx, "max*").Val()) > 2)
}

func watch(db *redis.Client) {
	check(db.Set(ctx, "count", 0, 0).Err() == nil)
	add := func(tx *redis.Tx) error {
		count, err := tx.Get(ctx, "count").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "count", count+1, 0).Err() })
		return err
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for done := 0; done < 50; {
				err := db.Watch(ctx, add, "count")
				check(err == nil || errors.Is(err, redis.TxFailedErr), err)
				if err == nil {
					done++
				}
			}
		})
	}
	all.Wait()
	check(db.Get(ctx, "count").Val() == "200", db.Get(ctx, "count").Val())
}

func lock(db *redis.Client) {
	locker := redislock.New(db)
	mine, err := locker.Obtain(ctx, "lock", 100*time.Second, nil)
	check(err == nil, err)
	_, err = locker.Obtain(ctx, "lock", 100*time.Second, nil)
	check(err == redislock.ErrNotObtained, err)
	check(mine.Refresh(ctx, 200*time.Second, nil) == nil)
	left, err := mine.TTL(ctx)
	check(err == nil && left > 190*time.Second, err, left)
	again, err := locker.Obtain(ctx, "lock", time.Second, &redislock.Options{Token: mine.Token()})
	check(err == nil && again.Release(ctx) == nil, err)
	check(mine.Release(ctx) == redislock.ErrLockNotHeld)
}

func redsyncLock(db *redis.Client) {
	locks := redsync.New(goredis.NewPool(db))
	mine := locks.NewMutex("mutex", redsync.WithExpiry(100*time.Second), redsync.WithTries(1))
	again := locks.NewMutex("mutex", redsync.WithTries(1), redsync.WithSetNXOnExtend())
	check(mine.Lock() == nil && again.Lock() != nil)
	is, err := mine.Extend()
	check(is && db.PTTL(ctx, "mutex").Val() > 90*time.Second, err)
	is, err = mine.Unlock()
	check(is, err)
	_, err = mine.Unlock()
	check(errors.Is(err, redsync.ErrLockAlreadyExpired), err)
	check(again.Lock() == nil && db.Del(ctx, "mutex").Val() == 1)
	is, err = again.Extend()
	check(is && db.Exists(ctx, "mutex").Val() == 1, err)
}

func limit(db *redis.Client) {
	limiter, limit := redis_rate.NewLimiter(db), redis_rate.PerHour(10)
	some, err := limiter.AllowN(ctx, "me", limit, 6)
	check(err == nil && some.Allowed == 6 && some.RetryAfter == -1, err)
	none, err := limiter.AllowN(ctx, "me", limit, 6)
	check(err == nil && none.Allowed == 0 && none.RetryAfter > 10*time.Minute, err)
	rest, err := limiter.AllowAtMost(ctx, "me", limit, 6)
	check(err == nil && 3 <= rest.Allowed && rest.Allowed <= 4 && rest.ResetAfter > 50*time.Minute, err)
}

func main() {
	made := 0
	for _, protocol := range []int{2, 3} {
		db := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol})
		if protocol == 2 {
			made = runCalls(db, os.Args[2])
		}
		use(db)
		watch(db)
		lock(db)
		redsyncLock(db)
		limit(db)
		check(db.Close() == nil)
	}
	fmt.Printf("go-redis %s: %d calls, WATCH, redislock, redsync, redis_rate\n", redis.Version(), made)
}
