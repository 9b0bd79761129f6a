// node-redis: the calls of calls.json, and what programs do with the library. Arguments: the port and calls.json.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { RedisStore } from 'rate-limit-redis'
import { RedisStore as OldStore } from 'rate-limit-redis-5'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient, WatchError } from 'redis'
import { limit, RELEASE, runCalls } from './agrees.mjs'

const [port, calls] = process.argv.slice(2)
const connect = async RESP => {
    const db = createClient({ url: `redis://127.0.0.1:${port}`, RESP })
    db.on('error', error => { throw error })
    return await db.connect()
}

async function use(db) {
    await db.flushAll()
    assert.equal(await db.set('k', 'v', { expiration: { type: 'EX', value: 1000 }, condition: 'NX' }), 'OK')
    assert.equal(await db.set('k', 'w', { condition: 'NX' }), null)
    assert.equal(await db.set('k', 'w', { expiration: 'KEEPTTL', GET: true }), 'v')
    assert((await db.ttl('k')) > 900)
    assert.equal(await db.getEx('k', { type: 'PX', value: 500_000 }), 'w')
    assert((await db.pTTL('k')) > 400_000 && (await db.persist('k')))
    assert.deepEqual(await db.mGet(['k', 'nope']), ['w', null])
    for (let n = 0; n < 300; n++) db.set(`scan:${n}`, 'v')
    const keys = new Set()
    for await (const some of db.scanIterator({ MATCH: 'scan:*', COUNT: 50 })) [some].flat().forEach(key => keys.add(key))
    assert.equal(keys.size, 300)
    assert.deepEqual(await db.multi().incr('n').set('o', 'p').incr('n').exec(), [1, 'OK', 2])
    assert.equal(await db.copy('k', 'l'), 1)
    assert.equal(await db.rename('l', 'm'), 'OK')
    assert((await db.info('memory')).includes('used_memory:'))
}

async function watch(db, other) {
    await db.set('count', '0')
    await db.watch('count')
    await other.set('count', '10')
    await assert.rejects(db.multi().incr('count').exec(), WatchError)
    await db.watch('count')
    const value = Number(await db.get('count'))
    assert.deepEqual(await db.multi().set('count', String(value + 1)).get('count').exec(), ['OK', '11'])
}

// The lock that the manual of Redis describes; the library has none of its own.
async function lock(db, other) {
    const acquire = (by, token) => by.set('lock', token, { expiration: { type: 'PX', value: 100_000 }, condition: 'NX' })
    const release = (by, token) => by.eval(RELEASE, { keys: ['lock'], arguments: [token] })
    assert.equal(await acquire(db, 'mine'), 'OK')
    assert.equal(await acquire(other, 'theirs'), null)
    assert.equal(await release(other, 'theirs'), 0)
    assert.equal(await release(db, 'mine'), 1)
    assert.equal(await db.set('lock', 'gone', { expiration: { type: 'PX', value: 20 } }), 'OK')
    while ((await acquire(other, 'theirs')) === null);
    const hash = await db.scriptLoad(RELEASE)
    assert.equal(await db.evalSha(hash, { keys: ['lock'], arguments: ['theirs'] }), 1)
}

// The store of express-rate-limit.
async function store(db, Store, prefix) {
    const store = new Store({ prefix, sendCommand: (...command) => db.sendCommand(command) })
    await store.init({ windowMs: 60_000 })
    assert.equal((await store.increment('me')).totalHits, 1)
    const { totalHits, resetTime } = await store.increment('me')
    assert(totalHits === 2 && resetTime - Date.now() > 50_000)
    assert.equal((await store.get('me')).totalHits, 2)
    await db.scriptFlush()
    assert.equal((await store.increment('me')).totalHits, 3)
}

let made = 0
for (const RESP of [2, 3]) {
    const [db, other] = [await connect(RESP), await connect(RESP)]
    if (RESP === 2) made = await runCalls(calls, call => db.sendCommand(call))
    await use(db)
    await watch(db, other)
    await lock(db, other)
    await limit(new RateLimiterRedis({ storeClient: db, useRedisPackage: true, points: 2, duration: 60 }))
    await store(db, RedisStore, 'new')
    await store(db, OldStore, 'old')
    await Promise.all([db.close(), other.close()])
}
const { version } = createRequire(import.meta.url)('redis/package.json')
console.log(`node-redis ${version}: ${made} calls, WATCH, the lock of the manual, rate-limiter-flexible, rate-limit-redis`)
