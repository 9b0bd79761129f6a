// What the two libraries for Node share.

import { readFileSync } from 'node:fs'
import assert from 'node:assert/strict'

export const RELEASE =
    'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'

function agrees(reply, expected) {
    if (Array.isArray(expected)) {
        return Array.isArray(reply) && reply.length === expected.length && reply.every((part, n) => agrees(part, expected[n]))
    }
    if (expected === null || typeof expected !== 'object') return reply === expected
    if ('error' in expected) return reply instanceof Error && reply.message.startsWith(expected.error)
    if ('contains' in expected) return reply.includes(expected.contains)
    return 'any' in expected || (expected.from <= reply && reply <= expected.to)
}

// Lets two pass a limiter of rate-limiter-flexible, and no third.
export async function limit(limiter) {
    assert.equal((await limiter.consume('me')).remainingPoints, 1)
    assert.equal((await limiter.consume('me')).remainingPoints, 0)
    await assert.rejects(limiter.consume('me'), refusal => refusal.consumedPoints === 3 && refusal.msBeforeNext > 50_000)
    await limiter.delete('me')
}

// Makes a call until there is a leader that answers it.
export async function until(call) {
    for (const deadline = Date.now() + 60_000; ; await new Promise(resolve => setTimeout(resolve, 20))) {
        try {
            return await call()
        } catch (error) {
            if (Date.now() > deadline) throw error
        }
    }
}

// Makes the calls of a file with `send`, one after the other. Returns their number.
export async function runCalls(file, send) {
    const calls = JSON.parse(readFileSync(file, 'utf8'))
    for (const [call, expected] of calls) {
        const reply = await send(call).catch(error => error)
        assert(agrees(reply, expected), `${call}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(reply)} ${reply}`)
    }
    return calls.length
}
