// ioredis's Cluster while the leader is killed. Arguments: the ports of the nodes, and the command that kills their leader.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { Cluster } from 'ioredis'
import { until } from './agrees.mjs'

const [ports, kill] = process.argv.slice(2)
const db = new Cluster(ports.split(',').map(port => ({ host: '127.0.0.1', port: Number(port) })))
for (let n = 0; n < 100; n++) assert.equal(await db.set(`key ${n}`, n), 'OK')
assert.equal(db.nodes('master').length, 1)
execFileSync(kill)
for (let n = 0; n < 100; n++) assert.equal(await until(() => db.get(`key ${n}`)), String(n))
assert.equal(await until(() => db.set('after', 'the leader was killed')), 'OK')
const replies = await db.pipeline().set('{tag}a', 1).incr('{tag}a').get('{tag}a').exec()
assert.deepEqual(replies, [[null, 'OK'], [null, 2], [null, '2']])
db.disconnect()
const { version } = createRequire(import.meta.url)('ioredis/package.json')
console.log(`ioredis ${version}: Cluster follows the leader`)
