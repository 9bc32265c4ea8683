/** A client cannot choose a weaker type of route by writing a path in another way. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { reached, useFleet } from '../support/vendors/fleet.ts'

const secretText = '123-45-6789'

const fleet = useFleet(({ at }) => [
  reached(
    'guarded',
    { vendorA: {}, ...at('a') },
    {
      ai: {
        routes: { '/v1/chat/completions': 'Completions', '*': 'Passthrough' },
        promptGuard: { request: [{ regex: { builtins: ['Ssn'] } }] },
      },
    },
  ),
])
beforeEach(() => fleet.forget())

/** Sends the path as it is, which HTTP clients would change; gives the status. */
async function post(path: string): Promise<number> {
  const messages = [{ role: 'user', content: `My number is ${secretText}` }]
  const body = JSON.stringify({ model: 'm', messages })
  const socket = connect(Number(new URL(fleet.base('x')).port), '127.0.0.1')
  const head = [
    `POST ${path} HTTP/1.1`,
    'host: gateway',
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const answer = await text(socket)
  return Number(answer.split(' ')[1])
}

describe('the type of a route', () => {
  it.each([
    '/guarded/v1/chat/completions',
    '/guarded/v1/chat/%63ompletions',
    '/guarded/v1/chat/%2563ompletions',
    '/guarded/v1//chat///completions',
    '/guarded/v1/chat/completions/',
    '/guarded/v1/chat/completions?x=/other',
    '/guarded/V1/Chat/Completions',
    '/guarded/v1/chat%2Fcompletions',
    '/guarded/v1/chat\\completions',
    '/guarded/v1/chat/completions;a=b',
    '/guarded/v1;a/chat/completions/;b',
    '/guarded/v1/chat/completions%3Fx',
    'http://gateway/guarded/v1/chat/%63ompletions',
  ])('[BackendAI.routes] is guarded for %s', async (path) => {
    expect(await post(path)).toBe(200)
    expect(fleet.lastCall('a')?.path).toMatch(/^\/v1\/chat\/completions/)
    expect(fleet.lastCall('a')?.text).not.toContain(secretText)
    expect(fleet.lastCall('a')?.text).toContain('My number is')
  })

  it.each([
    '/guarded/v1/chat/./completions',
    '/guarded/v1/x/../chat/completions',
    '/guarded/v1/chat/%2e/completions',
    '/guarded/v1/x/%2E%2e/chat/completions',
    '/guarded/v1/x/..;/chat/completions',
    '/guarded/v1/x%2f..%2fchat/completions',
    '/guarded/v1/chat/completions%00',
  ])('[BackendAI.routes] refuses %s, which providers read in different ways', async (path) => {
    expect(await post(path)).toBe(400)
    expect(fleet.vendors.a.calls).toEqual([])
  })

  it('[RouteType=Passthrough] sends other paths on as they are', async () => {
    await post('/guarded/v1/Models/org%2Fmodel/?x=%31')
    expect(fleet.lastCall('a')?.path).toBe('/v1/Models/org%2Fmodel/?x=%31')
    expect(fleet.lastCall('a')?.text).toContain(secretText)
  })
})
