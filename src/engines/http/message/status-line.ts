import { STATUS_CODES } from '../../../ground/base/node-http.ts'

/** Phrases from RFC 9110 15 of statuses for which Node still uses older phrases. */
const renamed: Record<number, string> = { 413: 'Content Too Large', 422: 'Unprocessable Content' }

/** The reason phrase of a status; empty for unregistered codes, which RFC 9112 4 allows. */
export function reasonPhrase(status: number): string {
  return renamed[status] ?? STATUS_CODES[status] ?? ''
}

const lines: (string | undefined)[] = []

/** The status line of a response, with its line end. */
export function statusLine(status: number): string {
  let line = lines[status]
  if (line === undefined) {
    line = `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`
    lines[status] = line
  }
  return line
}

let dateSecond = -1
let dateText = ''

/** The current `date` field line (RFC 9110 5.6.7); computed once a second. */
export function dateLine(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = `date: ${new Date(second * 1000).toUTCString()}\r\n`
  }
  return dateText
}
