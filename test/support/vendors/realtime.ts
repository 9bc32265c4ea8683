/** A simulator of vendorA's realtime interface: sessions over a WebSocket, answered with texts. */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'

export interface RealtimeVendor {
  readonly port: number
  readonly sessions: { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  /** Types of events that clients have sent. */
  readonly events: string[]
  /** Close codes of sessions. */
  readonly closed: number[]
  close(): Promise<void>
}

export const usageOfSession = {
  total_tokens: 18,
  input_tokens: 11,
  output_tokens: 7,
  input_token_details: { text_tokens: 11, audio_tokens: 0, cached_tokens: 3 },
  output_token_details: { text_tokens: 7, audio_tokens: 0 },
}

const paths = ['/v1/realtime', '/openai/v1/realtime', '/openai/realtime']

export async function startRealtimeVendor(): Promise<RealtimeVendor> {
  const server = createServer((_, response) => response.writeHead(426).end())
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: true })
  server.on('upgrade', (request, socket, head) => {
    const { url = '', headers } = request
    vendor.sessions.push({ path: url, headers })
    const { pathname } = new URL(url, 'http://vendor')
    const hasKey = headers.authorization !== undefined || headers['api-key'] !== undefined
    if (!paths.includes(pathname) || !hasKey) {
      const status = hasKey ? '404 Not Found' : '401 Unauthorized'
      socket.end(`HTTP/1.1 ${status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
      return
    }
    sockets.handleUpgrade(request, socket, head, (client) => serve(client, vendor))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const vendor: RealtimeVendor = {
    port: (server.address() as AddressInfo).port,
    sessions: [],
    events: [],
    closed: [],
    close: () =>
      new Promise((resolve) => {
        for (const client of sockets.clients) client.terminate()
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return vendor
}

function serve(client: WebSocket, vendor: RealtimeVendor): void {
  let count = 0
  const send = (type: string, fields: object) => {
    client.send(JSON.stringify({ type, event_id: `event_${++count}`, ...fields }))
  }
  client.on('close', (code) => vendor.closed.push(code))
  client.on('message', (data) => {
    const { type } = JSON.parse(String(data)) as { type: string }
    vendor.events.push(type)
    if (type !== 'response.create') return
    const at = { response_id: 'resp_sim', item_id: 'item_sim', output_index: 0, content_index: 0 }
    for (const delta of ['Hello ', 'there']) send('response.output_text.delta', { ...at, delta })
    const response = { id: 'resp_sim', object: 'realtime.response', status: 'completed' }
    send('response.done', { response: { ...response, output: [], usage: usageOfSession } })
  })
  send('session.created', { session: { id: 'sess_sim', object: 'realtime.session' } })
}
