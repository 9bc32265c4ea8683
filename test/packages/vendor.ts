/** A vendor of models that answers with what it was asked: whole, compressed, as an error, or one character an event. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'

export interface Vendor {
  readonly url: string
  close(): Promise<void>
}

interface Chat {
  readonly stream?: boolean
  readonly messages: readonly { readonly content: string }[]
}

const json = 'application/json'
/** Pages of other origins may call it. */
const open = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': '*',
  'access-control-allow-methods': '*',
}

function answer(response: ServerResponse, { messages, stream }: Chat): void {
  const received = messages.at(-1)?.content ?? ''
  const [word = '', ...rest] = received.split(' ')
  const text = rest.join(' ').replaceAll('_AT_', '@')
  const send = (status: number, type: string, body: string | Buffer, headers = {}) =>
    response.writeHead(status, { ...open, 'content-type': type, ...headers }).end(body)
  const whole = JSON.stringify({
    received,
    choices: [{ message: { role: 'assistant', content: text } }],
  })
  if (word === 'garbage') send(200, json, '{"choices": [')
  else if (word === 'text') send(200, 'text/plain', 'ada@example.com')
  else if (word === 'fail') send(400, json, JSON.stringify({ error: { message: text } }))
  else if (word === 'zip') send(200, json, gzipSync(whole), { 'content-encoding': 'gzip' })
  else if (stream !== true) send(200, json, whole)
  else {
    const events = [...text].map((content) => ({ choices: [{ index: 0, delta: { content } }] }))
    const lines = [...events.map((event) => JSON.stringify(event)), '[DONE]']
    send(200, 'text/event-stream', lines.map((line) => `data: ${line}\n\n`).join(''))
  }
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = await request.toArray()
  if (request.method === 'OPTIONS') response.writeHead(204, open).end()
  else if (request.method === 'POST') answer(response, JSON.parse(Buffer.concat(pieces).toString()))
  else response.writeHead(200, { ...open, 'content-type': json }).end('{"data":[]}')
}

export async function startVendor(): Promise<Vendor> {
  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
