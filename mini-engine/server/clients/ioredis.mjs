// ioredis: the calls of calls.json, and what programs do with the library. Arguments: the port and calls.json.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import Redlock from 'redlock'
import { Mutex } from 'redis-semaphore'
import { limit, RELEASE, runCalls } from './agrees.mjs'

const [port, calls] = process.argv.slice(2)
const [db, other] = [new Redis(Number(port)), new Redis(Number(port))]

async function use() {
    await db.flushall()
    assert.equal(await db.set('k', 'v', 'EX', 1000, 'NX'), 'OK')
    assert.equal(await db.set('k', 'w', 'NX'), null)
    assert((await db.ttl('k')) > 900 && (await db.expire('k', 2000, 'GT')) === 1)
    const pipeline = db.pipeline()
    for (let n = 0; n < 300; n++) pipeline.set(`scan:${n}`, 'v')
    await pipeline.exec()
    const keys = new Set()
    for await (const some of db.scanStream({ match: 'scan:*', count: 50 })) some.forEach(key => keys.add(key))
    assert.equal(keys.size, 300)
    assert.deepEqual(await db.multi().incr('n').set('o', 'p').incr('n').exec(), [[null, 1], [null, 'OK'], [null, 2]])
    // It sends the hash first, and the text where the hash is unknown.
    db.defineCommand('release', { numberOfKeys: 1, lua: RELEASE })
    await db.script('FLUSH')
    assert.equal(await db.release('k', 'w'), 0)
    assert.equal(await db.release('k', 'v'), 1)
}

async function watch() {
    await db.set('count', '0')
    await db.watch('count')
    await other.set('count', '10')
    assert.equal(await db.multi().incr('count').exec(), null)
    await db.watch('count')
    assert.deepEqual(await db.multi().incr('count').exec(), [[null, 11]])
}

async function locks() {
    const [mine, theirs] = [new Redlock([db]), new Redlock([other], { retryCount: 0 })]
    const lock = await mine.lock(['one', 'two'], 100_000)
    await assert.rejects(theirs.lock(['two', 'three'], 100_000))
    const extended = await lock.extend(200_000)
    assert((await db.pttl('one')) > 190_000)
    await extended.unlock()
    await (await theirs.lock(['two', 'three'], 100_000)).unlock()
    assert.equal(await db.exists('one', 'two', 'three'), 0)

    const options = { lockTimeout: 300, refreshInterval: 20, acquireAttemptsLimit: 1 }
    const [first, second] = [new Mutex(db, 'mutex', options), new Mutex(other, 'mutex', options)]
    await first.acquire()
    await assert.rejects(second.acquire())
    // It outlives its time, because it is refreshed.
    await new Promise(resolve => setTimeout(resolve, 500))
    await assert.rejects(second.acquire())
    await first.release()
    await second.acquire()
    await second.release()
}

async function monitor() {
    const shown = await db.monitor()
    const seen = new Promise(resolve => shown.on('monitor', (_, [name, text]) => name === 'echo' && resolve(text)))
    await other.echo('hello')
    assert.equal(await seen, 'hello')
    shown.disconnect()
}

const made = await runCalls(calls, ([name, ...args]) => db.call(name, ...args))
await use()
await watch()
await locks()
await limit(new RateLimiterRedis({ storeClient: db, points: 2, duration: 60 }))
await monitor()
;[db, other].forEach(each => each.disconnect())
const { version } = createRequire(import.meta.url)('ioredis/package.json')
console.log(`ioredis ${version}: ${made} calls, WATCH, redlock, redis-semaphore, rate-limiter-flexible, MONITOR`)
