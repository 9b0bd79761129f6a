"""redis-py's RedisCluster while the leader is killed. Arguments: the ports of the nodes, and the command that kills their leader."""

import subprocess
import sys
import time

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisError

ports, kill = sys.argv[1:]


def until(call):
    """Makes a call until there is a leader that answers it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return call()
        except (RedisError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


nodes = [ClusterNode("127.0.0.1", int(port)) for port in ports.split(",")]
db = RedisCluster(startup_nodes=nodes, decode_responses=True)
assert len(db.get_primaries()) == 1 and len(db.get_replicas()) == 2
for n in range(100):
    assert db.set(f"key {n}", n)
assert db.mget_nonatomic("key 1", "key 2") == ["1", "2"]
subprocess.run([kill], check=True)
for n in range(100):
    assert until(lambda: db.get(f"key {n}")) == str(n)
assert until(lambda: db.set("after", "the leader was killed"))
with db.pipeline() as pipe:
    replies = pipe.set("{tag}a", 1).incr("{tag}a").get("after").execute()
assert replies == [True, 2, "the leader was killed"], replies
print(f"redis-py {redis.__version__}: RedisCluster follows the leader")
