/** Requests that the process of the page sends to the listeners of its gateway. */
import { chunksOf, linesOf } from '../log/lines.ts'
import type { ConsoleServer } from './server.ts'

export interface PageRequest {
  readonly scheme: 'http' | 'https'
  readonly port: number
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** A response, as far as it has arrived. */
export interface PageResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Set when the response is complete. */
  readonly durationMs?: number
  /** Why the response is not complete. */
  readonly problem?: string
}

interface AnswerPart {
  readonly status?: number
  readonly headers?: readonly string[]
  readonly data?: string
  readonly durationMs?: number
  readonly problem?: string
}

const bytesOf = (data: string) => Uint8Array.from(atob(data), (char) => char.charCodeAt(0))

function headersOf(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let at = 0; at < raw.length; at += 2) {
    headers[(raw[at] ?? '').toLowerCase()] = raw[at + 1] ?? ''
  }
  return headers
}

/** Calls `show` after each part of the response, and returns the last state. @throws ServerError */
export async function sendThrough(
  server: ConsoleServer,
  request: PageRequest,
  signal: AbortSignal,
  show: (response: PageResponse) => void = () => undefined,
): Promise<PageResponse> {
  const { body } = await server.post('send', request, signal)
  const decoder = new TextDecoder()
  const parts = new TextDecoder()
  let response: PageResponse = { status: 0, headers: {}, body: '' }
  if (body === null) return response
  for await (const lines of linesOf(chunksOf(body))) {
    for (const line of lines) {
      if (line.length === 0) continue
      const part = JSON.parse(parts.decode(line)) as AnswerPart
      const { status, headers, data, durationMs, problem } = part
      response = {
        ...response,
        ...(status !== undefined && { status, headers: headersOf(headers ?? []) }),
        ...(data !== undefined && {
          body: response.body + decoder.decode(bytesOf(data), { stream: true }),
        }),
        ...(durationMs !== undefined && { durationMs }),
        ...(problem !== undefined && { problem }),
      }
      show(response)
    }
  }
  return response
}

/** The values of the JSON in a response: one, or one for each event of a stream. */
export function jsonValues({ headers, body }: PageResponse): unknown[] {
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true
  const texts = isStream
    ? body.split(/\r?\n\r?\n/).map((event) => {
        const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'))
        return lines.map((line) => line.slice(5).trimStart()).join('\n')
      })
    : [body]
  return texts.flatMap((text) => {
    try {
      return [JSON.parse(text) as unknown]
    } catch {
      // The end of a stream, or an event that has not arrived completely.
      return []
    }
  })
}
