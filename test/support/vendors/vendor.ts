/** The base of the vendor simulators: a server that checks requests and sends given answers. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface VendorCall {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly text: string
  /** The body as it came. */
  readonly bytes: Buffer
  readonly body: Record<string, unknown>
}

/** Answers one call; a text is why the call is refused with 400. */
export type Answer = (call: VendorCall, response: ServerResponse) => void

export interface Vendor {
  readonly port: number
  /** Every call so far. */
  readonly calls: VendorCall[]
  /** Calls whose client went away before the answer was complete. */
  aborted: number
  /** Answers the next calls, in order; then `answer` does again. */
  readonly next: Answer[]
  answer: Answer
  close(): Promise<void>
}

/** An error by the documented interface; its status is 400 if not set. */
export type Refusal = string | { readonly status: number; readonly message: string } | undefined

/** `check` returns the error by the documented interface; undefined if the request is valid. */
export async function startVendor(
  check: (call: VendorCall) => Refusal | Promise<Refusal>,
  answer: Answer,
  refuse: (message: string, status: number) => object,
  port = 0,
  tls?: { readonly certificate: string; readonly key: string },
): Promise<Vendor> {
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const answerTo = async (call: VendorCall) => {
      vendor.calls.push(call)
      response.once('close', () => {
        if (!response.writableFinished) vendor.aborted++
      })
      const problem = await check(call)
      if (problem === undefined) {
        ;(vendor.next.shift() ?? vendor.answer)(call, response)
        return
      }
      const { status, message } =
        typeof problem === 'string' ? { status: 400, message: problem } : problem
      json(response, status, refuse(message, status))
    }
    // A client may leave before all of its request has arrived.
    void read(request).then(answerTo, () => vendor.aborted++)
  }
  // Idle connections stay open, since a request that meets a close may rightly fail.
  const server =
    tls === undefined
      ? createServer({ keepAliveTimeout: 0 }, onRequest)
      : createSecureServer({ cert: tls.certificate, key: tls.key }, onRequest)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const vendor: Vendor = {
    port: (server.address() as AddressInfo).port,
    calls: [],
    aborted: 0,
    next: [],
    answer,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return vendor
}

async function read(request: IncomingMessage): Promise<VendorCall> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString('utf8')
  const { method = '', url = '', headers } = request
  let body: Record<string, unknown> = {}
  try {
    body = JSON.parse(text) as Record<string, unknown>
  } catch {
    // What is no JSON has no fields; checks see the text.
  }
  return { method, path: url, headers, text, bytes, body }
}

export function json(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

/** Events as the vendor frames them, without an end. */
export function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  response.flushHeaders()
}

export function sendEvent(response: ServerResponse, data: unknown, event?: string): void {
  const name = event === undefined ? '' : `event: ${event}\n`
  response.write(`${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
}
