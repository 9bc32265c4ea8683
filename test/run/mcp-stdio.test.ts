/** MCP servers that are commands: confined, supervised, and with clear errors if they misbehave. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { describeIsolation, findIsolation } from '../../src/gateway/stdio/isolation.ts'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { policy, secret } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { waitFor } from '../support/wait-for.ts'

const script = join(import.meta.dirname, '..', 'support', 'stdio-server.mjs')
const node = process.execPath
const port = await freePort()
const otherPort = await freePort()
/** Children that escape have this name, so that the test finds them. */
const marker = `escaped-${process.pid}`
const isolation = findIsolation(undefined)
const hasNamespaces = isolation.namespaces !== undefined

const limits = {
  timeout: '3s',
  messageSize: 65_536,
  memory: 209_715_200,
  openFiles: 100,
  instances: 20,
}
const stdio = (more: object = {}, ...args: readonly string[]) => ({
  targets: [{ name: 's', stdio: { command: [node, script, ...args], limits, ...more } }],
})

/** Arguments that would create a file in the working folder if a shell read them. */
const shellTexts = ['$(touch a)', '`touch b`', '; touch c', '| touch d', '&& touch e', '\ntouch f']

const gateway = useGateway(() => ({
  env: {
    SLUICE_STDIO_SERVERS: 'true',
    SLUICE_TEST_SECRET: 'of the gateway',
    npm_config_node_options: 'of the gateway',
  },
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        tools: stdio({
          env: [
            { name: 'PLAIN', value: 'a b' },
            { name: 'TOKEN', secretRef: { name: 'key', key: 'token' } },
          ],
        }),
        open: stdio({ network: true }),
        verbatim: stdio({}, ...shellTexts),
        // Memory is measured once a second, which may take longer on a busy machine.
        patient: stdio({ limits: { ...limits, timeout: '60s' } }),
        shared: stdio({ scope: 'Shared' }),
        modern: stdio({}, 'modern'),
        mine: stdio({ scope: 'Principal' }),
        few: stdio({ limits: { ...limits, instances: 1 } }),
        missing: { targets: [{ name: 'm', stdio: { command: ['no-such-program'] } }] },
        failing: {
          targets: [{ name: 'f', stdio: { command: [node, '-e', 'process.exit(5)'] } }],
        },
        several: {
          targets: [
            { name: 'one', stdio: { command: [node, script] } },
            { name: 'two', stdio: { command: [node, script] } },
          ],
        },
        preload: stdio({ env: [{ name: 'LD_PRELOAD', value: '/tmp/x.so' }] }),
        nosecret: stdio({ env: [{ name: 'A', secretRef: { name: 'absent', key: 'k' } }] }),
      },
      [
        secret('key', { token: 'of the Secret' }),
        secret('keys', { a: 'key-a', b: 'key-b' }),
        policy('mine', 'HTTPRoute/mine', {
          traffic: { apiKeyAuthentication: { mode: 'Strict', secretRef: { name: 'keys' } } },
        }),
      ],
    ),
  },
}))

type Client = Awaited<ReturnType<typeof connectClient>>

/** Calls a tool; an error of the protocol is its message. */
async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  try {
    const { content } = await client.callTool({ name, arguments: args })
    return (content as { text: string }[])[0]?.text ?? ''
  } catch (error) {
    return `error: ${error instanceof Error ? error.message : error}`
  }
}

async function using<Result>(
  path: string,
  act: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = await connectClient(port, `/${path}`)
  try {
    return await act(client)
  } finally {
    await client.close()
  }
}

const refusalOf = (path: string) =>
  connectClient(port, `/${path}`).then(
    () => 'connected',
    (error: Error) => error.message,
  )

/** Names of the processes of this machine. */
const processNames = () =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, 'latin1')] : []
    } catch {
      return []
    }
  })

describe('a command', () => {
  const client = useFixture(() => connectClient(port, '/tools'))

  it('is an MCP server for clients, with tools and progress', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('count')
    const seen: unknown[] = []
    const onprogress = (progress: unknown) => seen.push(progress)
    await client.callTool({ name: 'progress', arguments: {} }, undefined, { onprogress })
    expect(seen).toEqual([{ progress: 1, total: 2 }])
  })

  it('[CVE-2026-69263] gets a folder of its own, no variables of the gateway, and no network', async () => {
    const about = JSON.parse(await call(client, 'about', { port }))
    expect(about.files).toEqual([])
    expect(about.env).toMatchObject({ PLAIN: 'a b', TOKEN: 'of the Secret' })
    expect(JSON.stringify(about.env)).not.toContain('of the gateway')
    const allowed = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'PLAIN', 'TOKEN']
    expect(Object.keys(about.env).filter((name) => !allowed.includes(name))).toEqual([
      'SLUICE_STDIO_SERVER',
    ])
    expect(about.network).toBe(!hasNamespaces)
    const open = JSON.parse(await using('open', (other) => call(other, 'about', { port })))
    expect(open.network).toBe(true)
  })

  it('[CVE-2026-85660] gets arguments as they are: no shell reads those of the definition or of clients', async () => {
    const found = await using('verbatim', (other) =>
      call(other, 'about', { port: shellTexts.join(' ') }),
    )
    expect(JSON.parse(found)).toMatchObject({ args: shellTexts, files: [] })
  })

  it('has the protections that the gateway logs, and none of its privileges', async () => {
    const { inForce, missing } = describeIsolation(isolation)
    for (const text of [inForce, ...missing]) expect(gateway.stderr).toContain(`commands: ${text}`)
    const { privileges } = JSON.parse(await call(client, 'about', { port }))
    if (isolation.setpriv !== undefined) expect(privileges).toMatch(/^NoNewPrivs:\s1$/m)
    if (isolation.hasNoCapabilities) expect(privileges).toMatch(/^CapEff:\s0+$/m)
  })

  it('writes to the log of the gateway with its name, without control characters', async () => {
    await using('tools', (other) => call(other, 'crash'))
    const lines = ['about to \u{fffd}[31mcrash', 'the server ended with code 3']
    await waitFor('both lines', () =>
      lines.every((line) => gateway.stderr.includes(`default/tools/s: ${line}`)),
    )
  })

  it('has a process for each session, or one for all', async () => {
    expect(await call(client, 'count')).toBe('1')
    expect(await using('tools', (other) => call(other, 'count'))).toBe('1')
    expect(await call(client, 'count')).toBe('2')
    expect(await using('shared', (other) => call(other, 'count'))).toBe('1')
    expect(await using('shared', (other) => call(other, 'count'))).toBe('2')
  })

  it('is one of several targets', async () => {
    const counts = await using('several', async (other) => [
      await call(other, 'one_count'),
      await call(other, 'two_count'),
      await call(other, 'one_count'),
    ])
    expect(counts).toEqual(['1', '1', '2'])
  })
})

/** Calls a tool in the modern era, and returns its text or the error. */
async function callModern(path: string, name: string, headers: Record<string, string> = {}) {
  const message = modernRequest('tools/call', { name, arguments: {} })
  const { message: answer } = await sendModern(`http://127.0.0.1:${port}/${path}`, message, {
    headers,
  })
  const { result, error } = answer as {
    result?: { content: { text: string }[] }
    error?: { code: number; message: string }
  }
  return result?.content[0]?.text ?? error
}

describe('both eras', () => {
  it('meet: a modern client at a command of either era', async () => {
    expect(await callModern('modern', 'count')).toBe('1')
    expect(await callModern('modern', 'count')).toBe('2')
    // A process of its own for each client needs a session.
    expect(await callModern('tools', 'count')).toMatchObject({ code: -32022 })
    const before = Number(await callModern('shared', 'count'))
    expect(await callModern('shared', 'count')).toBe(`${before + 1}`)
  })

  it('meet: a legacy client at a modern command', async () => {
    const count = await using('modern', (client) => call(client, 'count'))
    expect(count).toBe('3')
  })

  it('have a process for each principal', async () => {
    const as = (key: string) => ({ authorization: `Bearer ${key}` })
    const a = await connectClient(port, '/mine', {}, as('key-a'))
    const other = await connectClient(port, '/mine', {}, as('key-a'))
    const b = await connectClient(port, '/mine', {}, as('key-b'))
    expect(await call(a, 'count')).toBe('1')
    expect(await call(other, 'count')).toBe('2')
    expect(await call(b, 'count')).toBe('1')
    expect(await callModern('mine', 'count', as('key-b'))).toBe('2')
    await Promise.all([a, other, b].map((client) => client.close()))
  })

  it('lets a command ask the client of its session, and no other', async () => {
    const client = await connectClient(port, '/tools', { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }))
    expect(await call(client, 'ask')).toContain('"action":"accept"')
    await client.close()
    expect(await using('shared', (one) => call(one, 'ask'))).toContain('does not support')
  })
})

describe('a command that misbehaves gives clients an error that says so', () => {
  it.each([
    ['crash', 'the server ended with code 3'],
    ['silent', 'the server did not respond within 3 s'],
    ['noise', 'the server wrote 100 lines in a row that are not MCP messages'],
    ['long', 'the server wrote a line of more than 65536 bytes'],
    ['flood', 'the server sent 2000 unrequested messages in 10 s'],
    ['eat', 'the server uses more than 209715200 bytes of memory', 'patient'],
  ])('%s', async (tool, message, path = 'tools') => {
    expect(await using(path, (client) => call(client, tool))).toContain(message)
    // The next session has a process of its own at once.
    expect(await using('tools', (client) => call(client, 'count'))).toBe('1')
  })

  it('may write lines that are no messages', async () => {
    await using('tools', async (client) => expect(await call(client, 'chatter')).toBe('chatted'))
  })

  it('is named if it cannot be started, and started again with a delay', async () => {
    const missing = 'the server cannot be started: no-such-program was not found'
    expect(await refusalOf('missing')).toContain(missing)
    await waitFor('the delay', async () =>
      /ended with code 5, .* times in a row; it may start again in/.test(
        await refusalOf('failing'),
      ),
    )
  })

  it('has no more processes than its limit', async () => {
    await using('few', async (client) => {
      expect(await call(client, 'count')).toBe('1')
      expect(await refusalOf('few')).toContain('already has 1 processes')
    })
  })

  it.runIf(process.platform === 'linux')('leaves no children behind', async () => {
    await using('tools', async (client) => {
      expect(await call(client, 'fork', { marker })).toBe('forked')
      await waitFor('the child', () => processNames().some((name) => name.includes(marker)))
      expect(await call(client, 'crash')).toContain('code 3')
    })
    await waitFor('the end of it', () => !processNames().some((name) => name.includes(marker)))
  })
})

/** Process ids of the children of a process. */
const childrenOf = (parent: number) =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
      return Number(fields[1]) === parent ? [Number(pid)] : []
    } catch {
      return []
    }
  })

describe.runIf(process.platform === 'linux')('the process that runs commands', () => {
  it('is replaced if it ends, and commands run again', async () => {
    expect(await using('tools', (client) => call(client, 'count'))).toBe('1')
    const host = childrenOf(gateway.pid ?? 0).find((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('stdio'),
    )
    process.kill(host ?? 0, 'SIGKILL')
    await waitFor('the next one', async () => {
      const count = await using('tools', (client) => call(client, 'count')).catch(() => '')
      return count === '1'
    })
    expect(gateway.stderr).toContain('the process that runs commands ended with SIGKILL')
  })
})

describe('a gateway that may not run commands [CVE-2026-42271, CVE-2026-40933]', () => {
  const other = useGateway(() => ({
    manifests: { 'all.yaml': mcpManifests(otherPort, { tools: stdio() }) },
  }))

  it('says so in the status and to clients', async () => {
    const { stdout } = await sluice('status', '--log-file', other.logFile)
    expect(stdout).toContain('StdioServers')
    expect(stdout).toContain('start sluice run with --stdio-servers true')
    const url = `http://127.0.0.1:${otherPort}/tools`
    const message = modernRequest('tools/list', {})
    const { text } = await sendModern(url, message)
    expect(text).toContain('this gateway runs no commands')
  })
})

describe('a definition that cannot be used', () => {
  it('[CVE-2026-69263] names the variable or the Secret', () => {
    expect(gateway.stderr).toContain(
      'spec.mcp.targets[0].stdio.env[0].name: LD_PRELOAD would change the programs',
    )
    expect(gateway.stderr).toContain(
      'spec.mcp.targets[0].stdio.env[0].secretRef: Secret absent does not exist',
    )
  })
})
