// What both clusters can do, in the words of each one's own client library.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// store is a connection to a cluster, or to one of its nodes.
type store interface {
	put(ctx context.Context, key, value string) error
	close() error
}

// kind says how to connect to a cluster's nodes, which are HOST:PORT each.
type kind struct {
	// Connects up to so many clients, who put where the library, or the leader, says.
	cluster func(nodes []string, clients int) (store, error)
	// Connects to one node alone.
	node func(address string) (store, error)
	// The node that leads.
	leader func(ctx context.Context, nodes []string) (string, error)
}

var kinds = map[string]kind{
	"mini-engine": {
		cluster: func(nodes []string, clients int) (store, error) {
			return &redisStore{redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes, PoolSize: clients, ReadTimeout: 10 * time.Second})}, nil
		},
		node: func(address string) (store, error) {
			return &redisStore{redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, PoolSize: 100, ContextTimeoutEnabled: true})}, nil
		},
		leader: redisLeader,
	},
	"etcd": {
		// The leader's address alone, as etcd's own benchmark with --target-leader: a follower would pass each put on.
		cluster: func(nodes []string, clients int) (store, error) {
			leader, err := etcdLeader(context.Background(), nodes)
			if err != nil {
				return nil, err
			}
			return newEtcd(leader, clients)
		},
		node:   func(address string) (store, error) { return newEtcd(address, 1) },
		leader: etcdLeader,
	},
}

type redisStore struct{ client redis.UniversalClient }

func (s *redisStore) put(ctx context.Context, key, value string) error {
	return s.client.Set(ctx, key, value, 0).Err()
}

func (s *redisStore) close() error { return s.client.Close() }

// redisLeader asks each node to put: that which does is the leader.
func redisLeader(ctx context.Context, nodes []string) (string, error) {
	said := []error{}
	for _, node := range nodes {
		client := redis.NewClient(&redis.Options{Addr: node, MaxRetries: -1})
		err := client.Set(ctx, "leader", "", 0).Err()
		client.Close()
		if err == nil {
			return node, nil
		}
		if words := strings.Fields(err.Error()); words[0] == "MOVED" {
			return words[2], nil
		}
		said = append(said, fmt.Errorf("%s: %w", node, err))
	}
	return "", errors.Join(said...)
}

// etcdStore has connections that its clients take in turn.
type etcdStore struct {
	connections []*clientv3.Client
	next        chan *clientv3.Client
}

// connectEtcd connects to one node. It does not print what goes wrong: a node that was killed is expected.
func connectEtcd(address string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{address}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

func newEtcd(address string, clients int) (store, error) {
	s := &etcdStore{next: make(chan *clientv3.Client, clients)}
	for range clients {
		client, err := connectEtcd(address)
		if err != nil {
			return nil, err
		}
		s.connections = append(s.connections, client)
		s.next <- client
	}
	return s, nil
}

func (s *etcdStore) put(ctx context.Context, key, value string) error {
	client := <-s.next
	// A connection carries many requests at once.
	s.next <- client
	_, err := client.Put(ctx, key, value)
	return err
}

func (s *etcdStore) close() error {
	all := []error{}
	for _, client := range s.connections {
		all = append(all, client.Close())
	}
	return errors.Join(all...)
}

func etcdLeader(ctx context.Context, nodes []string) (string, error) {
	said := []error{}
	for _, node := range nodes {
		client, err := connectEtcd(node)
		if err != nil {
			said = append(said, err)
			continue
		}
		asked, cancel := context.WithTimeout(ctx, time.Second)
		status, err := client.Status(asked, node)
		cancel()
		client.Close()
		if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
			return node, nil
		}
		said = append(said, fmt.Errorf("%s does not lead: %v", node, err))
	}
	return "", errors.Join(said...)
}
