// node-redis's cluster while the leader is killed. Arguments: the ports of the nodes, and the command that kills their leader.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { createCluster } from 'redis'
import { until } from './agrees.mjs'

const [ports, kill] = process.argv.slice(2)
const db = createCluster({ rootNodes: ports.split(',').map(port => ({ url: `redis://127.0.0.1:${port}` })) })
// A node that is gone is an event, too.
db.on('error', () => {})
db.on('node-error', () => {})
await db.connect()
assert.equal(db.masters.length, 1)
for (let n = 0; n < 100; n++) assert.equal(await db.set(`key ${n}`, n), 'OK')
execFileSync(kill)
for (let n = 0; n < 100; n++) assert.equal(await until(() => db.get(`key ${n}`)), String(n))
assert.equal(await until(() => db.set('after', 'the leader was killed')), 'OK')
assert.deepEqual(await db.multi().set('{tag}a', 1).incr('{tag}a').get('{tag}a').exec(), ['OK', 2, '2'])
db.destroy()
const { version } = createRequire(import.meta.url)('redis/package.json')
console.log(`node-redis ${version}: createCluster follows the leader`)
