import { STATUS_CODES } from '../../base/node-http.ts'

/** Phrases from RFC 9110 15 of statuses for which Node still uses older phrases. */
const renamed: Record<number, string> = { 413: 'Content Too Large', 422: 'Unprocessable Content' }

/** The reason phrase of a status; empty for unregistered codes, which RFC 9112 4 allows. */
export function reasonPhrase(status: number): string {
  return renamed[status] ?? STATUS_CODES[status] ?? ''
}

let dateSecond = -1
let dateText = ''

/** The current value of the `date` field (RFC 9110 5.6.7); computed once a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}
