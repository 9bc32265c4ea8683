/** `sluice mcp`: servers and clients of the official SDK. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { freePort, launcher, sluice } from '../support/gateway.ts'
import { connectClient } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { type Program, startProgram } from '../support/program.ts'
import { waitFor } from '../support/wait-for.ts'

const offering = (tool: string) => ({
  offer: (server: Parameters<Parameters<typeof useMcpServer>[0]['offer']>[0]) =>
    void server.registerTool(tool, { inputSchema: { text: z.string() } }, ({ text }) => ({
      content: [{ type: 'text' as const, text: `${tool} ${text}` }],
    })),
})
const notes = useMcpServer(offering('find'))
const orders = useMcpServer(offering('buy'))
const folder = mkdtempSync(join(tmpdir(), 'sluice-mcp-'))
const file = join(folder, 'made', 'servers.yaml')
const port = await freePort()
let program: Program
let key = ''

const mcp = (...args: readonly string[]) => sluice('mcp', ...args)
const urlOf = (server: { readonly port: number }) => `http://127.0.0.1:${server.port}/mcp`
const connected = () => connectClient(port, '/mcp', {}, { authorization: `Bearer ${key}` })

async function tools(): Promise<string[]> {
  const client = await connected()
  try {
    return (await client.listTools()).tools.map(({ name }) => name).sort()
  } finally {
    await client.close()
  }
}

beforeAll(async () => {
  const credential = ['--key-env', 'SLUICE_TEST_KEY']
  const address = ['--url', urlOf(notes), '--port', String(port)]
  const added = await mcp('add', 'notes', ...address, ...credential, '-f', file)
  expect(added.code).toBe(0)
  key = /Bearer (sk-sluice-\S+)"$/m.exec(added.stderr)?.[1] ?? ''
  const output = join(folder, 'output')
  program = startProgram(launcher, ['mcp', 'run', '-f', file], output, {
    PATH: process.env.PATH ?? '',
    XDG_STATE_HOME: folder,
    SLUICE_TEST_KEY: 'key-of-notes',
  })
  await waitFor('readiness', () => {
    const text = readFileSync(output, 'utf8')
    if (program.hasExited()) throw new Error(text)
    return /^ready$/m.test(text)
  })
})
afterAll(async () => {
  await program.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('sluice mcp', () => {
  it('serves the tools of a server, with its credential, to clients with the key', async () => {
    const client = await connected()
    const answer = await client.callTool({ name: 'find', arguments: { text: 'a lamp' } })
    expect(answer.content).toEqual([{ type: 'text', text: 'find a lamp' }])
    await client.close()
    expect(notes.received.at(-1)?.headers.authorization).toBe('Bearer key-of-notes')
    await expect(connectClient(port, '/mcp')).rejects.toThrow('no API Key found')
  })

  it('stores neither the key of clients nor that of the server, for this user only', () => {
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(key)
    expect(text).not.toContain('key-of-notes')
    expect(statSync(file).mode & 0o077).toBe(0)
  })

  it('adds and removes servers while the gateway runs', async () => {
    const args = ['orders', urlOf(orders), '-H', 'Authorization: Basic abc', '-f', file]
    expect((await mcp('add', ...args)).stderr).toBe(`added orders to ${file}\n`)
    await waitFor('both', async () => (await tools()).join() === 'notes_find,orders_buy')
    expect(orders.received.at(-1)?.headers.authorization).toBe('Basic abc')
    const { stdout } = await mcp('list', '-f', file)
    expect(stdout).toBe(`notes   ${urlOf(notes)}\norders  ${urlOf(orders)}\n`)
    expect((await mcp('add', ...args)).stderr).toContain('orders exists already')
    expect((await mcp('remove', 'orders', '-f', file)).code).toBe(0)
    await waitFor('one', async () => (await tools()).join() === 'find')
    expect(readFileSync(file, 'utf8')).not.toContain('Basic abc')
    expect((await mcp('remove', 'notes', '-f', file)).stderr).toContain('is the only server')
  })

  it('prints manifests that are valid, and writes nothing', async () => {
    const before = readFileSync(file, 'utf8')
    const url = 'https://mcp.example.com/v1/sse'
    const { stdout, code } = await mcp('add', 'far', '--url', url, '--print', '-f', file)
    expect(code).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(stdout).toContain('protocol: SSE')
    expect(stdout).toContain('tls: {}')
    expect(stdout).toContain('path: /v1/sse')
  })
})

describe('sluice mcp add', () => {
  it('adds a command, which a gateway runs if that is enabled', async () => {
    const place = join(folder, 'commands.yaml')
    const added = await mcp('add', 'local', '-f', place, '--', process.execPath, '-e', '0')
    expect(added.code).toBe(0)
    expect(added.stderr).toContain(`sluice mcp run -f ${place} --stdio-servers true`)
    const listed = await mcp('list', '-f', place)
    expect(listed.stdout).toContain(`local  ${process.execPath} -e 0`)
    expect((await sluice('validate', '-f', place)).stdout).not.toContain('error')
  })

  it.each([
    [['web'], 'name the address of the server'],
    [['Web', 'http://h/mcp'], 'a name has lower-case letters'],
    [['web', 'http://u:p@h/mcp'], 'write the credential as --header'],
    [['web', 'http://h/mcp?key=1'], 'a URL with a query'],
    [['web', 'http://'], 'http:// is not a URL'],
    [['web', 'http://h/mcp', '-H', 'Cookie: a'], 'only Authorization can be sent'],
    [['web', 'http://h/mcp', '-H', 'Authorization: a', '--key-env', 'A'], 'name one credential'],
    [['web', '--key-env', 'A', '--', 'npx', '-y', 'it'], '--key-env: npx is a command'],
    [['web', 'http://h/mcp', '-t', 'stdio'], 'Allowed choices are http, sse'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await mcp('add', '--print', ...args)
    expect(stderr).toContain(message)
    expect(code).toBe(2)
  })

  it('asks for a first server before others can be listed', async () => {
    const { code, stderr } = await mcp('list', '-f', join(folder, 'none.yaml'))
    expect([code, stderr]).toEqual([2, expect.stringContaining('add one: sluice mcp add NAME')])
  })
})
