import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder, useUpstream } from '../support/fixture.ts'
import { freePorts, launcher } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = useFolder('sluice-access-log-')
const upstream = useUpstream('main', (_, response) => response.end())
const requests = 60
/** Larger than what a socket or a pipe of the system takes at once. */
const bodyBytes = 150_000

/** A request body that only one request has, and that fills a line of the log. */
const bodyOf = (number: number) => `${number}:${String(number % 10).repeat(bodyBytes)}`

async function startLogging(stdout: 'pipe' | number): Promise<[ChildProcess, number]> {
  const { port, ready } = await freePorts('port', 'ready')
  const file = join(folder, `${port}.yaml`)
  const attributes = { add: [{ name: 'body', expression: 'string(request.body)' }] }
  writeFileSync(
    file,
    manifest(
      gateway(port),
      staticBackend('main', upstream.port),
      httpRoute('main', { rules: [{ backendRefs: [toBackend('main')] }] }),
      policy('log', 'Gateway/edge', { frontend: { accessLog: { attributes } } }),
    ),
  )
  const off = ['--admin-address', 'off', '--console-address', 'off', '--stats-address', 'off']
  const where = ['-f', file, '--ephemeral', '--readiness-address', `127.0.0.1:${ready}`]
  const args = ['run', ...where, ...off, '--workers', '2', '--access-log', 'json']
  // Node connects the output of its children with a socket.
  const child = spawn(launcher, args, { stdio: ['ignore', stdout, 'inherit'] })
  await waitFor('the gateway', () =>
    send(ready, { path: '/healthz/ready' }).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  return [child, port]
}

async function sendAll(port: number): Promise<void> {
  let next = 0
  const client = async () => {
    while (next < requests) {
      const answer = await send(port, { method: 'POST', body: bodyOf(next++) })
      expect(answer.status).toBe(200)
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
}

/** Every line is whole: it has the body of one request, and no request is missing. */
function expectAll(log: string): void {
  const lines = log.trimEnd().split('\n')
  const bodies = lines.map((line) => (JSON.parse(line) as { body: string }).body)
  const numbers = bodies.map((body) => Number.parseInt(body, 10)).sort((a, b) => a - b)
  expect(numbers).toEqual(Array.from({ length: requests }, (_, number) => number))
  expect(
    bodies.filter((body, at) => body !== bodyOf(Number.parseInt(bodies[at] ?? '', 10))),
  ).toEqual([])
}

describe('lines of the access log of two workers', () => {
  it('are whole on a socket that is read slowly', async () => {
    const [child, port] = await startLogging('pipe')
    let log = ''
    const read = (chunk: Buffer) => {
      log += chunk.toString()
      // Both workers have more to write than fits.
      child.stdout?.pause()
      setImmediate(() => child.stdout?.resume())
    }
    await sendAll(port)
    child.stdout?.on('data', read)
    await waitFor('all lines', () => log.split('\n').length > requests)
    child.kill('SIGTERM')
    await once(child, 'exit')
    expectAll(log)
  })

  it.each(['w', 'a'])('are whole in a file that is opened with %s', async (flags) => {
    const path = join(folder, `file-${flags}`)
    const fd = openSync(path, flags)
    const [child, port] = await startLogging(fd)
    closeSync(fd)
    await sendAll(port)
    child.kill('SIGTERM')
    await once(child, 'exit')
    expectAll(readFileSync(path, 'utf8'))
  })
})
