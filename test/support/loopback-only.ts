/**
 * Runs a program where there is no network but loopback, and one port of the machine: run with unshare, in namespaces
 * of its own. Every other address belongs to the namespace as well, so that what the program asks of it
 * arrives here, is written to a file, and fails.
 *
 *   node loopback-only.ts SOCKET PORT FILE PROGRAM [ARGUMENT…]
 *
 * Connections to 127.0.0.1:PORT go to the socket; FILE gets one line for everything that is asked elsewhere.
 */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { appendFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'

/** The proxy that the program is told to use for everything but loopback. */
const proxyPort = 9

const [socket = '', port = '', file = '', program = '', ...args] = process.argv.slice(2)
const note = (line: string): void => appendFileSync(file, `${line}\n`)

async function listen(at: number, host: string, onSocket: (client: Socket) => void): Promise<void> {
  const server = createServer((client) => {
    client.on('error', () => client.destroy())
    onSocket(client)
  })
  await once(server.listen(at, host), 'listening')
}

function forward(client: Socket): void {
  const upstream = connect(socket)
  upstream.on('error', () => client.destroy())
  client.on('close', () => upstream.destroy())
  client.pipe(upstream).pipe(client)
}

/** Notes the name in a question to a name server, and answers that there is no such name. */
function refuseName(question: Buffer): Buffer {
  const labels: string[] = []
  for (let at = 12; (question[at] ?? 0) > 0; at += 1 + (question[at] ?? 0)) {
    labels.push(question.toString('latin1', at + 1, at + 1 + (question[at] ?? 0)))
  }
  note(`name ${labels.join('.')}`)
  const answer = Buffer.from(question)
  answer.writeUInt16BE(0x81_83, 2)
  return answer
}

execFileSync('ip', ['link', 'set', 'lo', 'up'])
writeFileSync(`${file}.resolv`, 'nameserver 127.0.0.1\n')
execFileSync('mount', ['--bind', `${file}.resolv`, '/etc/resolv.conf'])
execFileSync('ip', ['route', 'add', 'local', '0.0.0.0/0', 'dev', 'lo'])
await listen(Number(port), '127.0.0.1', forward)
await listen(proxyPort, '127.0.0.1', (client) => {
  client.once('data', (bytes) => {
    note(`proxy ${bytes.toString('latin1').split('\r\n')[0]}`)
    client.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
  })
})
for (const one of [80, 443]) {
  await listen(one, '0.0.0.0', (client) => {
    note(`connection to ${client.localAddress}:${one}`)
    client.destroy()
  })
}
const names = createSocket('udp4')
names.on('message', (question, { port: from, address }) => {
  names.send(refuseName(question), from, address)
})
await once(names.bind(53, '0.0.0.0'), 'listening')

const child = spawn(program, args, { stdio: 'inherit' })
const [code] = (await once(child, 'exit')) as [number | null]
process.exit(code ?? 1)
