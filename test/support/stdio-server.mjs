// An MCP server over standard input and output whose tools misbehave, without any package. With the argument
// `modern` it speaks revision 2026-07-28 only.
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

const isModern = process.argv.includes('modern')
let calls = 0
let notes = 0
const waiting = new Map()

const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (value) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
  ...(isModern && { resultType: 'complete' }),
})

/** Whether a connection to this port of the machine succeeds. */
const reaches = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })

const tools = {
  count: () => ++calls,
  about: async ({ port }) => ({
    pid: process.pid,
    args: process.argv.slice(2),
    folder: process.cwd(),
    files: readdirSync('.'),
    env: process.env,
    network: typeof port === 'number' && (await reaches(port)),
    privileges: existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : '',
  }),
  crash: () => {
    process.stderr.write('about to \u001b[31mcrash\n')
    process.exit(3)
  },
  silent: () => new Promise(() => {}),
  noise: () => {
    for (let line = 0; line < 200; line++) process.stdout.write(`this is no JSON ${line}\n`)
    return new Promise(() => {})
  },
  chatter: () => {
    process.stdout.write('Debugger attached.\n')
    return 'chatted'
  },
  long: () => process.stdout.write('x'.repeat(200_000)),
  flood: () => {
    for (let one = 0; one < 3_000; one++) send({ method: 'notifications/message', params: {} })
    return new Promise(() => {})
  },
  eat: () => {
    const kept = []
    for (let one = 0; one < 40; one++) kept.push(Buffer.alloc(10_000_000, one + 1))
    return new Promise(() => setInterval(() => kept.length, 1_000))
  },
  fork: ({ marker }) => {
    const sleeper = spawn('sleep', ['600', marker].slice(0, 1), {
      detached: true,
      stdio: 'inherit',
      argv0: marker,
    })
    sleeper.unref()
    return 'forked'
  },
  progress: (_, meta) => {
    send({
      method: 'notifications/progress',
      params: { progressToken: meta?.progressToken, progress: 1, total: 2 },
    })
    return 'progressed'
  },
  ask: async () => {
    const id = `ask-${++notes}`
    const { promise, resolve } = Promise.withResolvers()
    waiting.set(id, resolve)
    send({
      id,
      method: 'elicitation/create',
      params: { message: 'Who?', requestedSchema: { type: 'object', properties: {} } },
    })
    return promise
  },
}

const listed = Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } }))
const hints = isModern ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}

async function answer({ method, params = {} }) {
  if (method === 'initialize' && !isModern) {
    return {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: 'scripted', version: '1' },
    }
  }
  if (method === 'server/discover' && isModern) {
    const supportedVersions = ['2026-07-28']
    return { supportedVersions, capabilities: { tools: {} }, ...hints }
  }
  if (method === 'tools/list') return { tools: listed, ...hints }
  if (method === 'ping') return {}
  if (method !== 'tools/call') return undefined
  const call = tools[params.name]
  return text(await call(params.arguments ?? {}, params._meta))
}

process.stderr.write('started\n')
createInterface({ input: process.stdin }).on('line', async (line) => {
  const message = JSON.parse(line)
  const { id, method } = message
  if (method === undefined) {
    waiting.get(id)?.(message.result ?? message.error)
    return
  }
  if (id === undefined) return
  const result = await answer(message)
  if (result === undefined) send({ id, error: { code: -32601, message: 'Method not found' } })
  else send({ id, result })
})
