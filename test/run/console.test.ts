/** Who may read what the console serves, and what it serves. */
import { readFileSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { createFold } from '../../src/past/replay/index.ts'
import { ConsoleProcess, urlIn } from '../support/console-process.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const recorded = join(import.meta.dirname, '../../examples/quickstart/recorded.jsonl')

interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** Requests by Node's own client, because `fetch` sets Host and Origin by itself. */
function ask(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => {
        const body = Buffer.concat(pieces).toString()
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
      })
    })
    request.on('error', reject)
    request.end()
  })
}

/** Exchanges a token as a browser does. */
async function signIn(url: URL) {
  const { status, headers } = await ask(url.href)
  expect(status).toBe(303)
  const key = /^\/#k=(.+)$/.exec(String(headers.location))?.[1] ?? ''
  const cookie = String(headers['set-cookie']).split(';')[0] ?? ''
  return { origin: url.origin, cookie: { cookie }, key: { authorization: `Bearer ${key}` } }
}

const startConsole = (...args: string[]) => useFixture(() => new ConsoleProcess(...args))

describe('a console', () => {
  const running = startConsole(recorded)

  it('gives files to the cookie and data to the key, after a token that works once', async () => {
    const url = await running.url()
    const { origin, cookie, key } = await signIn(url)
    expect((await ask(`${origin}/`, cookie)).body).toContain('<!doctype html>')
    expect((await ask(`${origin}/`, key)).status).toBe(401)
    expect((await ask(`${origin}/api/about`, cookie)).status).toBe(401)
    const about = await ask(`${origin}/api/about`, key)
    expect(JSON.parse(about.body)).toMatchObject({ isLive: false, isExport: true })
    expect((await ask(url.href)).status).toBe(401)
    const next = await waitFor('the next URL', () => urlIn(running.stderr))
    expect(next.origin).toBe(origin)
    expect((await ask(next.href)).status).toBe(303)
  })

  it('answers 401 on every path without the token, and 404 only with it', async () => {
    const { origin } = await running.url()
    for (const path of ['/', '/main.js', '/nothing', '/api/about', '/api/export', '/api/nothing']) {
      expect((await ask(origin + path)).status, path).toBe(401)
    }
    const wrong = { authorization: 'Bearer x', cookie: 'sluice-console-80=x' }
    expect((await ask(`${origin}/api/about`, wrong)).status).toBe(401)
    expect((await ask(`${origin}/?token=`)).status).toBe(401)
  })

  it.each([
    ['a host that an attacker rebound', { host: 'console.example' }],
    ['an address that is not loopback', { host: '192.0.2.1:15004' }],
    ['the Origin of another site', { origin: 'http://console.example' }],
    ['the Origin of another port', { origin: 'http://127.0.0.1:1' }],
    ['an opaque Origin', { origin: 'null' }],
    [
      'a script tag on another site',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' },
    ],
    [
      'a script tag on another port',
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors' },
    ],
  ])('answers 403 to %s, even with the key', async (_, headers) => {
    const { origin } = await running.url()
    expect((await ask(`${origin}/api/about`, headers)).status).toBe(403)
    expect((await ask(`${origin}/`, headers)).status).toBe(403)
  })

  it('reads no file outside of the page', async () => {
    const { origin, cookie } = await signIn(await waitFor('a URL', () => urlIn(running.stderr)))
    for (const path of [
      '/../package.json',
      '/%2e%2e/package.json',
      '/..%2fmain.js',
      '//etc/passwd',
    ]) {
      expect((await ask(origin + path, cookie)).status, path).toBe(404)
    }
    expect((await ask(`${origin}/`, cookie, 'POST')).status).toBe(405)
  })

  it('sends a policy without unsafe parts, and nothing that may be stored or framed', async () => {
    const { origin, cookie } = await signIn(await waitFor('a URL', () => urlIn(running.stderr)))
    const { headers } = await ask(`${origin}/`, cookie)
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/)
    expect(headers['content-security-policy']).not.toContain('unsafe')
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(headers).not.toHaveProperty('access-control-allow-origin')
  })
})

describe('the console of an export', () => {
  const folder = useFolder('sluice-console-')
  const packed = join(folder, 'log.jsonl.gz')
  writeFileSync(packed, gzipSync(readFileSync(recorded)))
  const running = startConsole(packed)

  it('serves the file as it is, which other commands read too', async () => {
    const { origin, key } = await signIn(await running.url())
    const { status, headers } = await ask(`${origin}/api/export`, key)
    expect({ status, type: headers['content-type'] }).toEqual({
      status: 200,
      type: 'application/octet-stream',
    })
    expect((await ask(`${origin}/api/events`, key)).status).toBe(404)
    const { code, stdout } = await sluice('log', '--log-file', packed, '-o', 'json')
    expect({ code, stdout }).toEqual({ code: 0, stdout: readFileSync(recorded, 'utf8') })
  })

  it('refuses a file that is no log', async () => {
    const path = join(folder, 'all.yaml')
    writeFileSync(path, 'kind: Gateway\n')
    const { code, stderr } = await sluice('console', path, '--no-open')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: `sluice: ${path} is neither a log file nor an export of one\n`,
    })
    expect((await sluice('console', path, '--log-file', path, '--no-open')).stderr).toContain(
      'name exactly one of',
    )
  })
})

describe('the console of a running gateway', async () => {
  const port = await freePort()
  const upstream = useUpstream()
  const gw = useGateway(() => ({
    manifests: {
      'all.yaml': manifest(
        gateway(port),
        staticBackend('main', upstream.port),
        httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
      ),
    },
    args: ['--console-address', '127.0.0.1:0', '--record', 'all'],
  }))
  const signedIn = async () => signIn(await waitFor('a URL', () => urlIn(gw.stderr)))

  it('serves events by range, and new ones as they are appended', async () => {
    const { origin, key } = await signedIn()
    const { log } = JSON.parse((await ask(`${origin}/api/about`, key)).body)
    const exported = await sluice('log', '--log-file', gw.logFile, '-o', 'json')
    const lines = exported.stdout.split('\n').slice(0, log.last)
    const { body } = await ask(`${origin}/api/events?to=${log.last}`, key)
    expect(body.split('\n').slice(0, -1)).toEqual(lines)
    const range = await ask(`${origin}/api/events?from=2&to=3`, key)
    expect(range.body.split('\n').slice(0, -1)).toEqual(lines.slice(1, 3))
    const response = await fetch(`${origin}/api/tail?from=${log.last}`, { headers: key })
    const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())
    let received = ''
    gw.write('more.yaml', manifest(httpRoute('late', { rules: [] })))
    for await (const text of reader) {
      received += text
      if (received.includes('"name":"late"')) break
    }
    expect(received.startsWith(`{"position":${log.last},`)).toBe(true)
  })

  it('serves stored states, from which a page can fold on', async () => {
    const { origin, key } = await signedIn()
    const none = await ask(`${origin}/api/snapshot?at=1`, key)
    expect(none).toMatchObject({ status: 404, body: 'no state is stored there\n' })
    await gw.stop()
    await gw.start()
    const again = await signIn(await waitFor('a URL', () => urlIn(gw.stderr)))
    const list = await ask(`${again.origin}/api/snapshots`, again.key)
    const [stored] = JSON.parse(list.body)
    const { headers, body } = await ask(
      `${again.origin}/api/snapshot?at=${stored.position}&foldVersion=${stored.foldVersion}`,
      again.key,
    )
    expect(headers['sluice-position']).toBe(String(stored.position))
    const { fold } = JSON.parse(body)
    const state = createFold({ checkRegex: regexProblem }, fold)
    expect(state.statusOf({ kind: 'HTTPRoute', namespace: 'default', name: 'shop' })).toBeDefined()
    const other = await ask(`${again.origin}/api/snapshot?foldVersion=0`, again.key)
    expect(other.status).toBe(404)
    const heads = await ask(`${again.origin}/api/heads?from=1&to=2`, again.key)
    const lines = heads.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map(([position]) => position)).toEqual([1, 2])
    expect(lines[0][2]).toMatch(/^dev\.sluice\./)
  })

  it('answers wrong ranges with 400', async () => {
    const { origin, key } = await signedIn()
    for (const query of ['from=0', 'from=x', 'to=-1', 'from=1e3']) {
      const { status, body } = await ask(`${origin}/api/events?${query}`, key)
      expect({ query, status }).toEqual({ query, status: 400 })
      expect(body).toMatch(/^(from|to): expected a positive number/)
    }
    for (const query of ['at=', 'at=0', 'at=1,x', `at=${'1,'.repeat(500)}1`]) {
      const { status, body } = await ask(`${origin}/api/events?${query}`, key)
      expect({ query, status }).toEqual({ query, status: 400 })
      expect(body).toBe('at: expected at most 500 positions, separated by commas\n')
    }
    const { body } = await ask(`${origin}/api/events?at=3,1`, key)
    const lines = body.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).position)).toEqual([3, 1])
  })

  it('serves decision records that match, and those of later requests', async () => {
    const { origin, key } = await signedIn()
    const stream = await fetch(`${origin}/api/decisions/tail`, { headers: key })
    await gw.send(port, { path: '/first' })
    let received = ''
    for await (const text of (stream.body ?? new ReadableStream()).pipeThrough(
      new TextDecoderStream(),
    )) {
      received += text
      if (received.includes('/first')) break
    }
    const found = await ask(`${origin}/api/decisions?status=2xx&limit=5`, key)
    const [decision, summary] = found.body
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(decision.request.path).toBe('/first')
    expect(summary).toEqual({ selected: 1, problems: [] })
    const none = await ask(`${origin}/api/decisions?status=404`, key)
    expect(JSON.parse(none.body)).toEqual({ selected: 0, problems: [] })
    expect((await ask(`${origin}/api/decisions?status=abc`, key)).status).toBe(400)
  })

  it('runs commands that read, on edited manifests too', async () => {
    const { origin, key } = await signedIn()
    const run = async (name: string, options: object) => {
      const url = `${origin}/api/commands/${name}`
      const init = { method: 'POST', headers: key, body: JSON.stringify(options) }
      const response = await fetch(url, init)
      const answer = response.ok ? await response.json() : { status: response.status }
      return answer as { readonly output: string }
    }
    const curl = `curl http://127.0.0.1:${port}/first`
    const now = await run('simulate', { curl })
    expect(JSON.parse(now.output).outcome).toMatchObject({
      verdict: 'forward',
      route: 'HTTPRoute default/shop',
    })
    const redirect = { type: 'RequestRedirect', requestRedirect: { statusCode: 302 } }
    const edited = httpRoute('shop', { rules: [{ filters: [redirect] }] })
    const changed = await run('simulate', { curl, manifests: manifest(edited) })
    expect(JSON.parse(changed.output).outcome).toMatchObject({ verdict: 'answer', status: 302 })
    const whatIf = JSON.parse((await run('what-if', { manifests: manifest(edited) })).output)
    expect(whatIf.requests).toMatchObject({ total: 1, changed: 1 })
    const reads = manifest(secret('other', { key: `\${file:/etc/hostname}` }))
    expect(await run('what-if', { manifests: reads })).toMatchObject({
      reports: [expect.stringContaining('file /etc/hostname is not read here')],
    })
    expect(await run('explain-providers', {})).toMatchObject({ exitCode: 0 })
    expect(await run('simulate', { logFile: '/etc/passwd' })).toMatchObject({
      exitCode: 2,
      reports: ['logFile: no such option'],
    })
    expect(await run('simulate', { curl: 'wget' })).toMatchObject({ exitCode: 2 })
    expect(await run('run', {})).toEqual({ status: 404 })
  })

  it('serves the metrics of the process, and nothing that changes it', async () => {
    const { origin, key } = await signedIn()
    expect((await ask(`${origin}/api/metrics`, key)).body).toContain(
      'process_resident_memory_bytes',
    )
    for (const method of ['POST', 'PUT', 'DELETE']) {
      expect((await ask(`${origin}/api/events`, key, method)).status).toBe(405)
    }
    expect((await ask(`${origin}/quitquitquit`, key)).status).toBe(401)
  })
})

describe('a gateway whose console address', () => {
  it('is not a loopback address does not start', async () => {
    const { code, stderr } = await sluice('console', recorded, '--console-address', '0.0.0.0:0')
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'sluice: --console-address: "0.0.0.0:0" is not a loopback `host:port`, such as `127.0.0.1:0`, or `off`\n',
    })
  })

  it('is in use does not start, if the address was given', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await sluice(
      'console',
      recorded,
      '--console-address',
      `127.0.0.1:${port}`,
    )
    other.close()
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('in use') })
  })
})
