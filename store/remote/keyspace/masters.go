package keyspace

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"celld/store/remote/link"
)

// masters returns the engine's masters, always in the same order. While the engine is known to be away, it returns an error at once.
func (k *Keyspace) masters(ctx context.Context) ([]rueidis.Client, error) {
	client := k.Link.Client()
	if client == nil {
		return nil, link.ErrNoConnection
	}
	if err := k.Link.Down(); err != nil {
		return nil, err
	}
	if !k.Link.Cluster() {
		return []rueidis.Client{client}, nil
	}
	return k.mastersOf(ctx, client.Nodes())
}

// mastersOf returns those of a Cluster's nodes that say that they are masters. It leaves out a replica that does not answer. A master that
// does not answer is an error.
func (k *Keyspace) mastersOf(ctx context.Context, nodes map[string]rueidis.Client) (masters []rueidis.Client, err error) {
	addresses := slices.Sorted(maps.Keys(nodes))
	roles := make([]string, len(addresses))
	errs := make([]error, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		asked.Go(func() {
			var answer []rueidis.RedisMessage
			node := nodes[address]
			answer, errs[i] = inTime(k, ctx, func() ([]rueidis.RedisMessage, error) {
				return node.Do(ctx, node.B().Role().Build()).ToArray()
			})
			if errs[i] == nil {
				roles[i], errs[i] = answer[0].ToString()
			}
		})
	}
	asked.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	known := make(map[string]bool, len(nodes))
	for i, address := range addresses {
		replica := roles[i] != "master"
		if errs[i] != nil {
			if replica = k.replicas[address]; !replica {
				return nil, unread(errs[i])
			}
		}
		known[address] = replica
		if !replica {
			masters = append(masters, nodes[address])
		}
	}
	k.replicas = known
	return masters, nil
}
